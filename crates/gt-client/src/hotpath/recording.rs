//! One round of a loop, recorded as it passes: what a template is made from.

use gt_ir::template::{Builder, MAX_STEPS, Step};
use gt_ir::{ClientCommand, Definition, TensorId, TransferId};

use super::history::History;

/// A round that is being recorded.
pub struct Recording {
    /// How many tokens come before the round begins.
    wait: usize,
    /// How many it has; `None` if a scope says where it ends.
    period: Option<usize>,
    tokens: Vec<u64>,
    commands: Vec<ClientCommand>,
    frees: Vec<TensorId>,
    /// Whether every token was that of the round before.
    repeats: bool,
}

/// A finished round.
pub struct Round {
    pub tokens: Vec<u64>,
    pub definition: Definition,
}

impl Recording {
    pub fn new(wait: usize, period: usize) -> Recording {
        Recording {
            wait,
            period: Some(period),
            tokens: Vec::with_capacity(period),
            commands: Vec::with_capacity(period),
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

    /// How many steps it has so far.
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    pub fn is_too_long(&self) -> bool {
        self.commands.len() > MAX_STEPS
    }

    /// Whether the round is complete. What is freed before the next begins belongs to it.
    pub fn is_complete(&self) -> bool {
        self.period == Some(self.commands.len())
    }

    /// Takes a command that makes a tensor, as the stream's history stands after it.
    pub fn step(&mut self, token: u64, command: &ClientCommand, history: &History) {
        self.repeats &= self.period.is_none_or(|period| history.stands(period));
        if self.wait > 0 {
            self.wait -= 1;
            return;
        }
        self.tokens.push(token);
        self.commands.push(match command {
            // Its data is not part of the round.
            ClientCommand::Create(create) => ClientCommand::Create(super::without_data(create)),
            other => other.clone(),
        });
    }

    pub fn free(&mut self, id: TensorId) {
        if !self.commands.is_empty() {
            self.frees.push(id);
        }
    }

    /// The round as the template of a number, if it was one like that before it.
    pub fn finish(self, number: u32, compile: bool) -> Option<Round> {
        let Recording { tokens, commands, frees, repeats, period, .. } = self;
        let base = commands.first().and_then(ClientCommand::made).filter(|_| repeats)?;
        let outputs = |command: &ClientCommand| match command {
            ClientCommand::Run(instruction) => instruction.results.len() as u32,
            _ => 1,
        };
        let width = commands.iter().map(outputs).sum();
        let mut builder = Builder::new([base, base], [width, 0], TransferId(0));
        for command in &commands {
            match command {
                ClientCommand::Run(instruction) => {
                    let step = builder.step_with_slots(instruction)?;
                    builder.push(Step::Run(step));
                }
                ClientCommand::Create(create) => {
                    builder.data(create.output, create.content.meta())?;
                }
                _ => return None,
            }
        }
        frees.into_iter().for_each(|id| builder.free_later(id));
        let definition = builder.finish(number, compile || period.is_none());
        // What one thread issued among another's instructions may be in no order.
        definition.check_client().ok()?;
        Some(Round { tokens, definition })
    }
}
