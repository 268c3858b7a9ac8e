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
use gt_ir::trace::{Input, Trace};
use gt_ir::{Operand, Scalar};
use smallvec::SmallVec;

use crate::context::recorder::{RecordedInstruction, Recorder};
use crate::context::{self, CallSite};
use crate::session::{Session, StreamValue};
use crate::tensor::ValueRef;

/// The trace of a function, and what is needed to issue its instructions again. Its inputs are the
/// function's tensors, and then its numbers.
#[derive(Debug)]
pub struct Program {
    trace: Trace,
    /// The number of tensors among the inputs.
    tensors: usize,
    instructions: Vec<RecordedInstruction>,
    /// For each instruction, the values that are not used after it.
    last_used: Vec<SmallVec<[u32; 2]>>,
}

/// The recorded instructions of a function whose outputs are not named yet.
pub struct ProgramRecording {
    tensors: usize,
    recorder: Recorder,
}

/// A recording of this thread's instructions. It stops when it is dropped.
pub struct Running {
    tensors: usize,
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
    let named = inputs.iter().map(|input| (input.value().id(), *input.meta()));
    context::with(|context| {
        if context.is_in_vmap() || context.autocast().is_some() || context.is_recording() {
            return None;
        }
        context.begin_recording(Recorder::new(session.number(), named, numbers)?);
        Some(())
    })?;
    Some(Running { tensors: inputs.len(), _thread: PhantomData })
}

impl Running {
    /// Ends the recording; `None` if something happened that cannot be replayed.
    pub fn end(self) -> Option<ProgramRecording> {
        let tensors = self.tensors;
        let recorder = context::with(context::Context::end_recording)?;
        recorder.is_complete().then_some(ProgramRecording { tensors, recorder })
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
        let ProgramRecording { tensors, recorder } = self;
        let outputs: Option<Vec<u32>> =
            outputs.iter().map(|output| recorder.value(output.value().id())).collect();
        let Recorder { mut trace, instructions, .. } = recorder;
        trace.outputs = outputs?;
        // Each value is dropped after its last use; one that is never used, after it is made.
        let mut last_used = vec![SmallVec::new(); instructions.len()];
        for (value, last) in (0..).zip(trace.last_uses()) {
            let made = trace.step_of(value);
            let step = last.map(|step| step as usize).or(made);
            if let Some(step) = step
                && !trace.outputs.contains(&value)
                && trace.meta(value).tensor().is_some()
            {
                let of = instructions.partition_point(|instruction| instruction.step <= step) - 1;
                last_used[of].push(value);
            }
        }
        Some(Program { trace, tensors, instructions, last_used })
    }
}

impl Program {
    /// Returns the number of its instructions.
    pub fn instructions(&self) -> usize {
        self.instructions.len()
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
        if !self.takes(session, inputs) || context.is_in_vmap() || context.autocast().is_some() {
            return None;
        }
        let mut values: SmallVec<[Option<Arc<StreamValue>>; 8]> =
            inputs.iter().map(|input| Some(Arc::clone(input.value()))).collect();
        values.resize(self.trace.inputs.len(), None);
        for (instruction, last_used) in self.instructions.iter().zip(&self.last_used) {
            let step = &self.trace.steps[instruction.step];
            let operand = |operand: &Operand<u32>| match *operand {
                Operand::Scalar(scalar) => Operand::Scalar(scalar),
                Operand::Tensor(value) => match &values[value as usize] {
                    Some(tensor) => Operand::Tensor(tensor.id()),
                    None => Operand::Scalar(Scalar::Float(numbers[value as usize - self.tensors])),
                },
            };
            let operands: Operands = step.operands.iter().map(operand).collect();
            let (results, attributes) = (instruction.results.clone(), step.attributes.clone());
            let work = instruction.work;
            let first =
                session.issue(site, step.operation, operands, attributes, results, &[], work);
            for (index, meta) in (0..).zip(&instruction.results) {
                values.push(Some(session.value(first.after(index), *meta, source)));
            }
            for &value in last_used {
                values[value as usize] = None;
            }
        }
        let output = |&value: &u32| {
            let value = values[value as usize].as_ref().expect("outputs do not end");
            ValueRef::new(Arc::clone(value))
        };
        Some(self.trace.outputs.iter().map(output).collect())
    }

    /// Returns whether it was recorded for inputs of these shapes and dtypes, and they belong to
    /// the session.
    fn takes(&self, session: &Session, inputs: &[ValueRef]) -> bool {
        let is_alike = |(input, recorded): (&ValueRef, &Input)| {
            let value = input.value();
            *recorded == Input::Tensor(value.meta)
                && value.session.is(session)
                && value.batched.is_none()
        };
        inputs.len() == self.tensors && inputs.iter().zip(&self.trace.inputs).all(is_alike)
    }
}
