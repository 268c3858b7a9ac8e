//! One round of a loop, noted as it passes: what a template is made from.

use gt_ir::{Command, Definition, Instruction, Meta, TensorId};

/// A round that is being noted.
pub struct Recording {
    /// How many tokens come before the round begins.
    wait: usize,
    /// How many it has.
    period: usize,
    tokens: Vec<u64>,
    metas: Vec<Meta>,
    steps: Vec<Option<Instruction>>,
    base: TensorId,
    frees: Vec<TensorId>,
    /// Whether every token was that of the round before.
    repeats: bool,
}

/// A finished round.
pub struct Round {
    pub tokens: Vec<u64>,
    /// Of the tensors that its steps make.
    pub metas: Vec<Meta>,
    pub definition: Definition,
}

impl Recording {
    pub fn new(wait: usize, period: usize) -> Recording {
        Recording {
            wait,
            period,
            tokens: Vec::with_capacity(period),
            metas: Vec::with_capacity(period),
            steps: Vec::with_capacity(period),
            base: TensorId(0),
            frees: Vec::new(),
            repeats: true,
        }
    }

    /// Whether the round is complete. What is freed before the next begins belongs to it.
    pub fn is_complete(&self) -> bool {
        self.steps.len() == self.period
    }

    pub fn period(&self) -> usize {
        self.period
    }

    /// Notes a command that makes a tensor; `repeats` says whether its token is that of the round
    /// before.
    pub fn step(&mut self, token: u64, command: &Command, meta: Meta, repeats: bool) {
        self.repeats &= repeats;
        if self.wait > 0 {
            self.wait -= 1;
            return;
        }
        let (output, instruction) = match command {
            Command::Run(instruction) => (instruction.output, Some(instruction.clone())),
            Command::Create { output, .. } => (*output, None),
            _ => return,
        };
        if self.steps.is_empty() {
            self.base = output;
        }
        self.tokens.push(token);
        self.metas.push(meta);
        self.steps.push(instruction);
    }

    pub fn free(&mut self, id: TensorId) {
        if !self.steps.is_empty() {
            self.frees.push(id);
        }
    }

    /// The round, if it was one like that before it.
    pub fn finish(self) -> Option<Round> {
        let Recording { tokens, metas, steps, base, frees, repeats, .. } = self;
        let definition = Definition { number: 0, base, steps, frees };
        repeats.then_some(Round { tokens, metas, definition })
    }
}
