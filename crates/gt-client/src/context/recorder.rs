//! The recorder of a program: the instructions that a function issues.

use gt_ir::instruction::{Operands, Results};
use gt_ir::number::Numbers;
use gt_ir::{Attributes, Instruction, Operand, Operation, Scalar, TensorId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The most instructions of a program.
const MAX_INSTRUCTIONS: usize = 8192;

/// A recorded instruction, on numbered values.
#[derive(Debug)]
pub(crate) struct RecordedInstruction {
    pub operation: &'static Operation,
    pub operands: Operands<u32>,
    /// The positions among the operands of numbers that may differ, and the index of each number.
    pub numbers: SmallVec<[(usize, usize); 1]>,
    pub attributes: Attributes,
    pub results: Results,
    pub work: u64,
    /// The values whose last use this is.
    pub last_used: SmallVec<[u32; 2]>,
}

/// The instructions so far. The values are numbered: the inputs, then all results.
pub(crate) struct Recorder {
    /// The number of the session.
    session: u64,
    names: FxHashMap<TensorId, u32>,
    /// The number of values so far.
    pub values: u32,
    /// The numbers that may differ, and which of them were seen.
    numbers: SmallVec<[f64; 2]>,
    passed: SmallVec<[bool; 2]>,
    pub steps: Vec<RecordedInstruction>,
    /// Whether everything so far can be replayed.
    is_replayable: bool,
}

impl Recorder {
    /// Starts a recording in a session for inputs with these names; `None` if two are equal, and so
    /// ambiguous. `numbers` are passed to operations unchanged, and occur nowhere else.
    pub fn new(
        session: u64,
        inputs: impl Iterator<Item = TensorId>,
        numbers: &[f64],
    ) -> Option<Recorder> {
        let mut names = FxHashMap::default();
        for (number, input) in inputs.enumerate() {
            if names.insert(input, number as u32).is_some() {
                return None;
            }
        }
        let values = names.len() as u32;
        Some(Recorder {
            session,
            names,
            values,
            numbers: SmallVec::from_slice(numbers),
            passed: SmallVec::from_elem(false, numbers.len()),
            steps: Vec::new(),
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
        self.is_replayable &= session == self.session && self.steps.len() < MAX_INSTRUCTIONS;
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
