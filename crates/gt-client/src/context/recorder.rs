//! The recorder of a program: the instructions that a function issues.

use gt_ir::instruction::Results;
use gt_ir::number::Numbers;
use gt_ir::trace::{Input, Trace};
use gt_ir::{Instruction, Meta, Operand, Operation, Scalar, TensorId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The most instructions of a program.
const MAX_INSTRUCTIONS: usize = 8192;

/// An instruction of a recording.
#[derive(Debug)]
pub(crate) struct RecordedInstruction {
    /// Its step of the trace; those of its further results follow.
    pub step: usize,
    /// Its results, as the trace has them; here for the sake of replays.
    pub results: Results,
    pub work: u64,
}

/// The instructions so far, as a trace whose inputs are the tensors and then the numbers that may
/// differ.
pub(crate) struct Recorder {
    /// The number of the session.
    session: u64,
    /// The values of tensors.
    names: FxHashMap<TensorId, u32>,
    /// The numbers that may differ, and which of them were seen.
    numbers: SmallVec<[f64; 2]>,
    passed: SmallVec<[bool; 2]>,
    pub trace: Trace,
    pub instructions: Vec<RecordedInstruction>,
    /// Whether everything so far can be replayed.
    is_replayable: bool,
}

impl Recorder {
    /// Starts a recording in a session for inputs with these names; `None` if two are equal, and so
    /// ambiguous. `numbers` are passed to operations unchanged, and occur nowhere else.
    pub fn new(
        session: u64,
        inputs: impl Iterator<Item = (TensorId, Meta)>,
        numbers: &[f64],
    ) -> Option<Recorder> {
        let (mut trace, mut names) = (Trace::default(), FxHashMap::default());
        for (name, meta) in inputs {
            if names.insert(name, trace.input(Input::Tensor(meta))).is_some() {
                return None;
            }
        }
        for &number in numbers {
            trace.input(Input::Number(Scalar::Float(number)));
        }
        Some(Recorder {
            session,
            names,
            numbers: SmallVec::from_slice(numbers),
            passed: SmallVec::from_elem(false, numbers.len()),
            trace,
            instructions: Vec::new(),
            is_replayable: true,
        })
    }

    /// Marks the recording as not replayable.
    pub fn invalidate(&mut self) {
        self.is_replayable = false;
    }

    /// Returns whether everything so far can be replayed, and all numbers were used.
    pub fn is_complete(&self) -> bool {
        self.is_replayable && self.passed.iter().all(|&passed| passed)
    }

    /// Returns the number of a tensor's value.
    pub fn value(&self, tensor: TensorId) -> Option<u32> {
        self.names.get(&tensor).copied()
    }

    /// Adds an instruction of a session.
    #[cold]
    pub fn record(&mut self, session: u64, instruction: &Instruction, work: u64) {
        let (operation, results) = (instruction.operation, &instruction.results);
        let mut operands = SmallVec::new();
        for operand in &instruction.operands {
            operands.push(match operand {
                Operand::Scalar(scalar) => self.number(operation, *scalar),
                Operand::Tensor(id) => match self.names.get(id) {
                    Some(&value) => Operand::Tensor(value),
                    None => return self.is_replayable = false,
                },
            });
        }
        self.is_replayable &= session == self.session && self.instructions.len() < MAX_INSTRUCTIONS;
        if !self.is_replayable {
            return;
        }
        let (step, attributes) = (self.trace.steps.len(), instruction.attributes.clone());
        let first = self.trace.record(operation, operands, attributes, SmallVec::new(), results);
        for index in 0..results.len() as u32 {
            self.names.insert(instruction.output.after(index.into()), first + index);
        }
        self.instructions.push(RecordedInstruction { step, results: results.clone(), work });
    }

    /// Returns a number operand: an input, if it may differ. One that the operation converts is a
    /// constant.
    fn number(&mut self, operation: &Operation, scalar: Scalar) -> Operand<u32> {
        if let Scalar::Float(value) = scalar
            && matches!(operation.numbers, Numbers::Converted)
            && let Some(which) = self.numbers.iter().position(|of| *of == value)
        {
            self.passed[which] = true;
            let tensors = self.trace.inputs.len() - self.numbers.len();
            return Operand::Tensor((tensors + which) as u32);
        }
        Operand::Scalar(scalar)
    }
}
