//! Recorded programs: the instructions that a function issued for some tensors, which are issued
//! again for other tensors of the same shapes and dtypes without running the function.
//!
//! Numbers that the function passes to operations unchanged may differ in each replay. The owner of
//! a program must key it by everything else that the function depends on. A function that waits for
//! a value, sends data or draws random numbers cannot be recorded.

use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use gt_ir::instruction::Operands;
use gt_ir::{Meta, Operand, Scalar};
use smallvec::SmallVec;

use crate::context::recorder::{RecordedInstruction, Recorder};
use crate::context::{self, CallSite};
use crate::session::{Session, StreamValue};
use crate::tensor::ValueRef;

/// The instructions of a function. Its values are numbered: the inputs, then all results.
#[derive(Debug)]
pub struct Program {
    inputs: SmallVec<[Meta; 4]>,
    steps: Vec<RecordedInstruction>,
    outputs: SmallVec<[u32; 2]>,
}

/// The recorded instructions of a function whose outputs are not named yet.
pub struct ProgramRecording {
    inputs: SmallVec<[Meta; 4]>,
    recorder: Recorder,
}

/// A recording of this thread's instructions. It stops when it is dropped.
pub struct Running {
    inputs: SmallVec<[Meta; 4]>,
    /// Not `Send`: it belongs to the thread that created it.
    _thread: PhantomData<*const ()>,
}

/// Returns whether this thread's instructions are being recorded.
pub fn is_recording() -> bool {
    context::with(context::Context::is_recording)
}

/// Runs a function of some tensors and records what it issues on this thread, as between [`begin`]
/// and [`Running::end`]. A function without inputs is not recorded.
pub fn record<T>(
    inputs: &[ValueRef],
    numbers: &[f64],
    function: impl FnOnce() -> T,
) -> (T, Option<ProgramRecording>) {
    let running = inputs.first().and_then(|first| begin(first.session(), inputs, numbers));
    let result = function();
    (result, running.and_then(Running::end))
}

/// Starts recording this thread's instructions in a session for some tensors. `numbers` are passed
/// to operations unchanged, and occur nowhere else. Nothing is recorded if two inputs are the same
/// tensor or of another session, inside another recording, in `vmap` or under autocast.
pub fn begin(session: &Session, inputs: &[ValueRef], numbers: &[f64]) -> Option<Running> {
    if inputs.iter().any(|input| !input.session().is(session)) {
        return None;
    }
    let names = inputs.iter().map(|input| input.value().id());
    context::with(|context| {
        if context.is_in_vmap() || context.autocast().is_some() || context.is_recording() {
            return None;
        }
        context.begin_recording(Recorder::new(session.number(), names, numbers)?);
        Some(())
    })?;
    let inputs = inputs.iter().map(|input| *input.meta()).collect();
    Some(Running { inputs, _thread: PhantomData })
}

impl Running {
    /// Ends the recording; `None` if something happened that cannot be replayed.
    pub fn end(mut self) -> Option<ProgramRecording> {
        let inputs = std::mem::take(&mut self.inputs);
        let recorder = context::with(context::Context::end_recording)?;
        recorder.is_complete().then_some(ProgramRecording { inputs, recorder })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        context::with(context::Context::end_recording);
    }
}

impl ProgramRecording {
    /// Returns the program with these results; `None` if one of them was not made by it.
    pub fn finish(self, outputs: &[ValueRef]) -> Option<Program> {
        let ProgramRecording { inputs, recorder } = self;
        let outputs: Option<SmallVec<[u32; 2]>> =
            outputs.iter().map(|output| recorder.value(output.value().id())).collect();
        let (outputs, values, mut steps) = (outputs?, recorder.values, recorder.steps);
        // Each value is dropped after its last use; one that is never used, after it is made.
        let mut is_done = vec![false; values as usize];
        for &output in &outputs {
            is_done[output as usize] = true;
        }
        let mut next = values;
        for step in steps.iter_mut().rev() {
            let made = next - step.results.len() as u32..next;
            next = made.start;
            let used = step.operands.iter().filter_map(|operand| operand.tensor().copied());
            for number in used.chain(made) {
                if !std::mem::replace(&mut is_done[number as usize], true) {
                    step.last_used.push(number);
                }
            }
        }
        Some(Program { inputs, steps, outputs })
    }
}

impl Program {
    /// Returns the number of its instructions.
    pub fn instructions(&self) -> usize {
        self.steps.len()
    }

    /// Issues the instructions in a session for other inputs and numbers, and returns the results;
    /// `None` if the inputs are of other shapes or dtypes, or of another session.
    #[track_caller]
    pub fn run(
        &self,
        session: &Session,
        inputs: &[ValueRef],
        numbers: &[f64],
    ) -> Option<SmallVec<[ValueRef; 2]>> {
        context::at(Location::caller(), |site| self.run_at(site, session, inputs, numbers))
    }

    fn run_at(
        &self,
        site: CallSite,
        session: &Session,
        inputs: &[ValueRef],
        numbers: &[f64],
    ) -> Option<SmallVec<[ValueRef; 2]>> {
        let CallSite { context, source } = site;
        let mut values: SmallVec<[Option<Arc<StreamValue>>; 8]> =
            inputs.iter().map(|input| Some(Arc::clone(input.value()))).collect();
        let is_alike = |value: &Option<Arc<StreamValue>>, meta: &Meta| {
            value.as_ref().is_some_and(|value| {
                value.meta == *meta && value.session.is(session) && value.batched.is_none()
            })
        };
        let are_alike = values.len() == self.inputs.len()
            && values.iter().zip(&self.inputs).all(|(value, meta)| is_alike(value, meta));
        if !are_alike || context.is_in_vmap() || context.autocast().is_some() {
            return None;
        }
        for step in &self.steps {
            let ids = step.operands.iter().map(|operand| {
                operand.map(|&number| values[number as usize].as_ref().expect("not ended").id())
            });
            let (mut ids, results): (Operands, _) = (ids.collect(), step.results.clone());
            for &(place, which) in &step.numbers {
                ids[place] = Operand::Scalar(Scalar::Float(numbers[which]));
            }
            let attributes = step.attributes.clone();
            let first =
                session.issue(site, step.operation, ids, attributes, results, &[], step.work);
            for (index, meta) in step.results.iter().enumerate() {
                values.push(Some(session.value(first.after(index as u64), *meta, source)));
            }
            for &number in &step.last_used {
                values[number as usize] = None;
            }
        }
        let output = |&number: &u32| {
            let value = values[number as usize].as_ref().expect("outputs do not end");
            ValueRef::new(Arc::clone(value))
        };
        Some(self.outputs.iter().map(output).collect())
    }
}
