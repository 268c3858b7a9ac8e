//! One round of a loop, noted as it passes: what a template is made from.

use gt_ir::template::MAX_STEPS;
use gt_ir::{Command, Definition, Instruction, Meta, TensorId};

use super::history::History;
use super::token::made_by;

/// A round that is being noted.
pub struct Recording {
    /// How many tokens come before the round begins.
    wait: usize,
    /// How many it has; `None` if a scope says where it ends.
    period: Option<usize>,
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
            period: Some(period),
            tokens: Vec::with_capacity(period),
            metas: Vec::with_capacity(period),
            steps: Vec::with_capacity(period),
            base: TensorId(0),
            frees: Vec::new(),
            repeats: true,
        }
    }

    /// What is issued in a scope that is to be compiled.
    pub fn of_region() -> Recording {
        Recording { period: None, ..Recording::new(0, 0) }
    }

    pub fn is_region(&self) -> bool {
        self.period.is_none()
    }

    pub fn is_too_long(&self) -> bool {
        self.steps.len() > MAX_STEPS
    }

    /// Whether the round is complete. What is freed before the next begins belongs to it.
    pub fn is_complete(&self) -> bool {
        self.period == Some(self.steps.len())
    }

    /// Notes a command that makes a tensor, as the stream's history stands after it.
    pub fn step(&mut self, token: u64, command: &Command, meta: Meta, history: &History) {
        self.repeats &= self.period.is_none_or(|period| history.stands(period));
        if self.wait > 0 {
            self.wait -= 1;
            return;
        }
        let Some(output) = made_by(command) else { return };
        let instruction = match command {
            Command::Run(instruction) => Some(instruction.clone()),
            _ => None,
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
        let Recording { tokens, metas, steps, base, frees, repeats, period, .. } = self;
        let compile = period.is_none();
        let definition = Definition { number: 0, base, steps, frees, compile };
        (repeats && !tokens.is_empty()).then_some(Round { tokens, metas, definition })
    }
}
