//! Recording one round of a loop, command by command; a template is made from it.

use bytes::Bytes;
use gt_ir::template::{MAX_STEPS, Step, TemplateBuilder};
use gt_ir::{ClientCommand, Content, Create, Definition, TensorData, TensorId, TransferId};
use rustc_hash::FxHashSet;

use super::history::TokenHistory;

/// A round that is being recorded.
pub struct RoundRecording {
    /// The number of tokens to skip until the round starts.
    wait: usize,
    /// The number of the round's tokens; `None` for a compiled region, which ends with its scope.
    period: Option<usize>,
    tokens: Vec<u64>,
    commands: Vec<ClientCommand>,
    frees: Vec<TensorId>,
    /// Whether it is a run of a section, which does not repeat immediately.
    is_section: bool,
    /// Whether every token so far equals that of the previous round.
    repeats: bool,
}

/// A finished round.
pub struct RecordedRound {
    pub tokens: Vec<u64>,
    pub definition: Definition,
}

impl RoundRecording {
    pub fn new(wait: usize, period: usize) -> RoundRecording {
        RoundRecording {
            wait,
            period: Some(period),
            tokens: Vec::with_capacity(period),
            commands: Vec::with_capacity(period),
            frees: Vec::new(),
            is_section: false,
            repeats: true,
        }
    }

    /// Starts recording a compiled region, from its first command on.
    pub fn of_region() -> RoundRecording {
        RoundRecording { period: None, ..RoundRecording::new(0, 0) }
    }

    /// Starts recording a run of `length` steps, from its first command on.
    pub fn of_section(length: usize) -> RoundRecording {
        RoundRecording { is_section: true, ..RoundRecording::new(0, length) }
    }

    pub fn is_section(&self) -> bool {
        self.is_section
    }

    pub fn is_region(&self) -> bool {
        self.period.is_none()
    }

    /// Returns the number of steps so far.
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    pub fn is_too_long(&self) -> bool {
        self.commands.len() > MAX_STEPS
    }

    /// Returns whether the round is complete. Frees before the next round belong to it.
    pub fn is_complete(&self) -> bool {
        self.period == Some(self.commands.len())
    }

    /// Adds a command that makes a tensor; `history` includes its token already.
    pub fn step(&mut self, token: u64, command: &ClientCommand, history: &TokenHistory) {
        self.repeats &= self.is_section || self.period.is_none_or(|period| history.holds(period));
        if self.wait > 0 {
            self.wait -= 1;
            return;
        }
        self.tokens.push(token);
        self.commands.push(match command {
            // Its data is not part of the round.
            ClientCommand::Create(create) => ClientCommand::Create(without_data(create)),
            other => other.clone(),
        });
    }

    pub fn free(&mut self, id: TensorId) {
        if !self.commands.is_empty() {
            self.frees.push(id);
        }
    }

    /// Returns the round as template `number`; `None` if it did not repeat the previous one, or
    /// cannot be a template.
    pub fn finish(self, number: u32, compile: bool) -> Option<RecordedRound> {
        let RoundRecording { tokens, commands, frees, repeats, period, .. } = self;
        let base = commands.first().and_then(ClientCommand::made).filter(|_| repeats)?;
        let outputs = |command: &ClientCommand| match command {
            ClientCommand::Run(instruction) => instruction.results.len() as u32,
            _ => 1,
        };
        let width = commands.iter().map(outputs).sum();
        let mut builder = TemplateBuilder::new([base, base], [width, 0], TransferId(0));
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
        // Tensors that the round only drops, such as the previous loss, may be freed earlier: they
        // are last, so that the frees before them do not wait.
        let read: FxHashSet<TensorId> = commands.iter().flat_map(reads).collect();
        let is_used = |id: &TensorId| *id >= base || read.contains(id);
        let (used, dropped): (Vec<_>, Vec<_>) = frees.into_iter().partition(is_used);
        used.into_iter().chain(dropped).for_each(|id| builder.free_later(id));
        let definition = builder.finish(number, compile || period.is_none());
        // If several threads issue into one session, a round may not be a valid template.
        definition.check_client().ok()?;
        Some(RecordedRound { tokens, definition })
    }
}

/// Returns the tensors that a command reads.
fn reads(command: &ClientCommand) -> impl Iterator<Item = TensorId> {
    let operands = match command {
        ClientCommand::Run(instruction) => &instruction.operands[..],
        _ => &[],
    };
    operands.iter().filter_map(|operand| operand.tensor().copied())
}

/// Returns the command without its data, of which only shape and dtype matter to a template.
fn without_data(create: &Create) -> Create {
    let meta = create.content.meta();
    let data = TensorData { dtype: meta.dtype, shape: meta.shape, bytes: Bytes::new() };
    Create { content: Content::Data(data), ..*create }
}
