//! The instructions that a session has issued last, for people who watch.

use gt_ir::{Instruction, Operation, SourceId, TensorId};

/// The number of instructions that are remembered; a power of two.
const KEPT: usize = 64;

/// The operation that computes a tensor, and the user's line.
#[derive(Clone, Copy)]
pub(crate) struct TensorSource {
    pub operation: &'static Operation,
    pub line: SourceId,
}

/// The sources of the latest tensors, apart from those that iterations compute.
#[derive(Default)]
pub(crate) struct RecentTensors {
    kept: Vec<(TensorId, TensorSource)>,
    next: usize,
}

impl RecentTensors {
    #[inline]
    pub fn note(&mut self, instruction: &Instruction) {
        let source = TensorSource { operation: instruction.operation, line: instruction.source };
        let entry = (instruction.output, source);
        match self.kept.get_mut(self.next) {
            Some(oldest) => *oldest = entry,
            None => self.kept.push(entry),
        }
        self.next = (self.next + 1) % KEPT;
    }

    /// Returns the source of a tensor, if it is one of the latest.
    pub fn source(&self, tensor: TensorId) -> Option<TensorSource> {
        self.kept.iter().find(|(id, _)| *id == tensor).map(|(_, source)| *source)
    }
}
