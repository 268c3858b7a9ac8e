//! What one worker does of a pass, planned once and played many times.
//!
//! A pass of a template that is planned for several workers becomes a script for each of them: the
//! instructions, exchanges and frees that it gets, with tensors named by their place. To play it
//! again takes only where the names of the pass begin, and what differs from what [`Bindings`]
//! predict; that is the same for all workers.

use crate::exchange::{Exchange, TransferId};
use crate::instruction::{Attributes, Command, Instruction, Operand, Operands, SourceId, TensorId};
use crate::operation::{Meta, Operation};
use crate::scalar::Scalar;
use crate::template::Bindings;

/// A worker's part of a pass.
#[derive(Clone, PartialEq, Debug)]
pub struct Script {
    pub session: u32,
    /// The script's number in its session; it replaces another one with that number.
    pub number: u32,
    /// How many names of clients, and of the planner's own, a pass uses.
    pub widths: [u64; 2],
    /// The tensors from outside and the numbers of the pass it was made from, for all workers.
    pub tensors: Vec<TensorId>,
    pub numbers: Vec<Scalar>,
    pub bases: [TensorId; 2],
    pub steps: Vec<ScriptStep>,
    pub compile: bool,
}

/// Which tensor, by its place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Name {
    /// The client's, counted from the pass's first.
    Own(u32),
    /// The planner's own, counted likewise.
    Made(u32),
    /// From outside, by slot.
    Outside(u32),
}

/// An operand of a step.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ScriptOperand {
    Tensor(Name),
    /// A number of the pass, by slot,
    Number(u32),
    /// or one that is always the same.
    Constant(Scalar),
}

#[derive(Clone, PartialEq, Debug)]
pub enum ScriptStep {
    Run {
        operation: &'static Operation,
        output: Name,
        operands: Vec<ScriptOperand>,
        attributes: Attributes,
        source: SourceId,
        signal: u32,
    },
    /// Its transfer is counted from the pass's first; names stand beside it.
    Exchange {
        exchange: Box<Exchange>,
        transfer: u32,
        input: Option<Name>,
        output: Option<Name>,
    },
    Free(Name),
}

/// Another pass.
#[derive(Clone, PartialEq, Debug)]
pub struct Play {
    pub session: u32,
    pub script: u32,
    /// Where the names of the pass begin, as in [`Script::bases`].
    pub bases: [TensorId; 2],
    pub transfer: TransferId,
    /// Tensors and numbers that are others than predicted, by slot.
    pub tensors: Vec<(u32, TensorId)>,
    pub numbers: Vec<(u32, Scalar)>,
    /// What it counts in flow control.
    pub weight: u32,
}

impl Script {
    /// The bindings of the pass that the script was made from.
    pub fn bindings(&self) -> Bindings {
        Bindings::of_script(self.bases, self.widths, &self.tensors, &self.numbers)
    }

    /// The commands that the script stands for in a pass.
    pub fn commands(&self, bindings: &Bindings, transfer: TransferId) -> Vec<Command> {
        self.steps.iter().map(|step| step.command(bindings, transfer)).collect()
    }
}

impl ScriptStep {
    /// The command that a step stands for in a pass.
    pub fn command(&self, bindings: &Bindings, first: TransferId) -> Command {
        let name = |name: &Name| bindings.named(*name);
        match self {
            ScriptStep::Run { operation, output, operands, attributes, source, signal } => {
                let operands: Operands = operands
                    .iter()
                    .map(|operand| match operand {
                        ScriptOperand::Tensor(of) => Operand::Tensor(name(of)),
                        ScriptOperand::Number(slot) => {
                            Operand::Scalar(bindings.number(*slot as usize))
                        }
                        ScriptOperand::Constant(scalar) => Operand::Scalar(*scalar),
                    })
                    .collect();
                Command::Run(Instruction {
                    operation,
                    output: name(output),
                    operands,
                    attributes: attributes.clone(),
                    source: *source,
                    signal: *signal,
                })
            }
            ScriptStep::Exchange { exchange, transfer, input, output } => {
                let mut exchange = exchange.clone();
                exchange.transfer = TransferId(first.0.wrapping_add(u64::from(*transfer)));
                exchange.input = input.as_ref().map(name);
                let meta: Option<Meta> = exchange.output.map(|(_, meta)| meta);
                exchange.output = output.as_ref().map(name).zip(meta);
                Command::Exchange(exchange)
            }
            ScriptStep::Free(of) => Command::Free(name(of)),
        }
    }
}
