//! Recorded programs: the instructions that a function issued for some tensors, which are issued
//! again for other tensors of the same shapes and dtypes without running the function.
//!
//! Numbers that the function passes to operations unchanged may differ in each replay. The owner of
//! a program must key it by everything else that the function depends on. A function that waits for
//! a value, sends data or draws random numbers cannot be recorded.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

use gt_ir::instruction::{Operands, Results};
use gt_ir::number::Numbers;
use gt_ir::{Attributes, Instruction, Meta, Operand, Operation, Scalar, TensorId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::session::{Session, StreamValue};
use crate::tensor::ValueRef;
use crate::{autocast, source, vmap};

/// The most instructions of a program.
const MAX_INSTRUCTIONS: usize = 8192;

/// The instructions of a function. Its values are numbered: the inputs, then all results.
#[derive(Debug)]
pub struct Program {
    inputs: SmallVec<[Meta; 4]>,
    steps: Vec<RecordedInstruction>,
    outputs: SmallVec<[u32; 2]>,
}

#[derive(Debug)]
struct RecordedInstruction {
    operation: &'static Operation,
    operands: Operands<u32>,
    /// The positions among the operands of numbers that may differ, and the index of each number.
    numbers: SmallVec<[(usize, usize); 1]>,
    attributes: Attributes,
    results: Results,
    work: u64,
    /// The values whose last use this is.
    last_used: SmallVec<[u32; 2]>,
}

thread_local! {
    static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };
}

struct Recorder {
    session: Session,
    names: FxHashMap<TensorId, u32>,
    /// The number of values so far.
    values: u32,
    /// The numbers that may differ, and which of them were seen.
    numbers: SmallVec<[f64; 2]>,
    passed: SmallVec<[bool; 2]>,
    steps: Vec<RecordedInstruction>,
    /// Whether everything so far can be replayed.
    is_replayable: bool,
}

/// Adds an instruction of this thread to the program that is being recorded, if any.
#[inline]
pub(crate) fn record_instruction(session: &Session, instruction: &Instruction, work: u64) {
    RECORDER.with_borrow_mut(|recorder| {
        if let Some(recorder) = recorder {
            recorder.record(session, instruction, work);
        }
    });
}

/// Marks the recording as not replayable: something happened on this thread that is not an
/// instruction.
#[inline]
pub(crate) fn invalidate() {
    RECORDER.with_borrow_mut(|recorder| {
        if let Some(recorder) = recorder {
            recorder.is_replayable = false;
        }
    });
}

impl Recorder {
    fn of(session: &Session, inputs: &[ValueRef], numbers: &[f64]) -> Option<Recorder> {
        let mut names = FxHashMap::default();
        for (number, input) in inputs.iter().enumerate() {
            if !input.session().is(session) {
                return None;
            }
            if names.insert(input.value().id(), number as u32).is_some() {
                // Two equal inputs are ambiguous.
                return None;
            }
        }
        let values = inputs.len() as u32;
        Some(Recorder {
            session: session.clone(),
            names,
            values,
            numbers: SmallVec::from_slice(numbers),
            passed: SmallVec::from_elem(false, numbers.len()),
            steps: Vec::new(),
            is_replayable: true,
        })
    }

    #[cold]
    fn record(&mut self, session: &Session, instruction: &Instruction, work: u64) {
        let (mut operands, mut numbers) = (Operands::new(), SmallVec::new());
        for (place, operand) in instruction.operands.iter().enumerate() {
            operands.push(match operand {
                Operand::Scalar(scalar) => {
                    // A number that the operation converts is a constant.
                    if let Scalar::Float(value) = scalar
                        && matches!(instruction.operation.numbers, Numbers::Converted)
                        && let Some(which) = self.numbers.iter().position(|of| of == value)
                    {
                        numbers.push((place, which));
                        self.passed[which] = true;
                    }
                    Operand::Scalar(*scalar)
                }
                Operand::Tensor(id) => match self.names.get(id) {
                    Some(&number) => Operand::Tensor(number),
                    None => return self.is_replayable = false,
                },
            });
        }
        for index in 0..instruction.results.len() as u64 {
            self.names.insert(instruction.output.after(index), self.values);
            self.values += 1;
        }
        self.is_replayable &= session.is(&self.session) && self.steps.len() < MAX_INSTRUCTIONS;
        if self.is_replayable {
            self.steps.push(RecordedInstruction {
                operation: instruction.operation,
                operands,
                numbers,
                attributes: instruction.attributes.clone(),
                results: instruction.results.clone(),
                work,
                last_used: SmallVec::new(),
            });
        }
    }
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
    RECORDER.with_borrow(Option::is_some)
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
    if vmap::is_active() || autocast::autocast().is_some() || is_recording() {
        return None;
    }
    RECORDER.set(Some(Recorder::of(session, inputs, numbers)?));
    let inputs = inputs.iter().map(|input| *input.meta()).collect();
    Some(Running { inputs, _thread: PhantomData })
}

impl Running {
    /// Ends the recording; `None` if something happened that cannot be replayed.
    pub fn end(mut self) -> Option<ProgramRecording> {
        let inputs = std::mem::take(&mut self.inputs);
        let recorder = RECORDER.take()?;
        let passes_all = recorder.passed.iter().all(|&passed| passed);
        (recorder.is_replayable && passes_all).then_some(ProgramRecording { inputs, recorder })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RECORDER.take();
    }
}

impl ProgramRecording {
    /// Returns the program with these results; `None` if one of them was not made by it.
    pub fn finish(self, outputs: &[ValueRef]) -> Option<Program> {
        let ProgramRecording { inputs, recorder: Recorder { names, mut steps, values, .. } } = self;
        let outputs: Option<SmallVec<[u32; 2]>> =
            outputs.iter().map(|output| names.get(&output.value().id()).copied()).collect();
        let outputs = outputs?;
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
        let mut values: SmallVec<[Option<Arc<StreamValue>>; 8]> =
            inputs.iter().map(|input| Some(Arc::clone(input.value()))).collect();
        let is_alike = |value: &Option<Arc<StreamValue>>, meta: &Meta| {
            value.as_ref().is_some_and(|value| {
                value.meta == *meta && value.session.is(session) && value.batched.is_none()
            })
        };
        let are_alike = values.len() == self.inputs.len()
            && values.iter().zip(&self.inputs).all(|(value, meta)| is_alike(value, meta));
        if !are_alike || vmap::is_active() || autocast::autocast().is_some() {
            return None;
        }
        let source = source::current();
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
                session.issue(step.operation, ids, attributes, results, &[], step.work, source);
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
