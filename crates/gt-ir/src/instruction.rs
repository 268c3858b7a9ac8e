//! Instructions and the other commands of a stream.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::data::Content;
use crate::dtype::DType;
use crate::exchange::{Exchange, Origin};
use crate::fabric::Joint;
use crate::operation::Operation;
use crate::scalar::Scalar;
use crate::script::{Name, Play, Script, ScriptOperand, ScriptStep};
use crate::signal::Shard;
use crate::template::{Definition, Invocation};

/// Names a tensor. Clients count from 0; on the way to the workers the dispatcher puts the
/// session's number into the upper bits, so that no session can name another's tensors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TensorId(pub u64);

impl TensorId {
    /// Bits that a client's own count may use.
    pub const LOCAL_BITS: u32 = 44;

    /// The same tensor as workers know it, or `None` if the client's count overflows.
    pub fn qualify(self, session: u32) -> Option<TensorId> {
        let fits =
            self.0 >> TensorId::LOCAL_BITS == 0 && session < 1 << (64 - TensorId::LOCAL_BITS);
        fits.then(|| TensorId(u64::from(session) << TensorId::LOCAL_BITS | self.0))
    }

    /// The session and its own name for the tensor.
    pub fn split(self) -> (u32, TensorId) {
        let local = self.0 & ((1 << TensorId::LOCAL_BITS) - 1);
        ((self.0 >> TensorId::LOCAL_BITS) as u32, TensorId(local))
    }
}

impl fmt::Display for TensorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Names a question that awaits its answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct RequestId(pub u64);

/// Names a line of the user's program; only the client knows which.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SourceId(pub u32);

/// What an operation works on: a tensor (named by `T`) or a number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Operand<T = TensorId> {
    Tensor(T),
    Scalar(Scalar),
}

impl<T> Operand<T> {
    pub fn tensor(&self) -> Option<&T> {
        match self {
            Operand::Tensor(tensor) => Some(tensor),
            Operand::Scalar(_) => None,
        }
    }

    /// The number, where it is one.
    pub fn scalar(&self) -> Option<Scalar> {
        match self {
            Operand::Tensor(_) => None,
            Operand::Scalar(scalar) => Some(*scalar),
        }
    }

    /// The same operand with its tensor named otherwise.
    pub fn map<U>(&self, f: impl FnOnce(&T) -> U) -> Operand<U> {
        match self {
            Operand::Tensor(tensor) => Operand::Tensor(f(tensor)),
            Operand::Scalar(scalar) => Operand::Scalar(*scalar),
        }
    }
}

/// The operands of one instruction.
pub type Operands<T = TensorId> = SmallVec<[Operand<T>; 3]>;

/// A parameter of an operation that is not a tensor. Scalars that may change from step to step
/// (a learning rate) are operands, not attributes: a new attribute is a new structure.
#[derive(Clone, PartialEq, Debug)]
pub enum Attribute {
    None,
    Int(i64),
    Float(f64),
    Bool(bool),
    DType(DType),
    /// Two stand in place: most lists are about the axes of a matrix.
    Ints(SmallVec<[i64; 2]>),
}

impl Attribute {
    pub fn ints<I: Into<i64> + Copy>(values: &[I]) -> Attribute {
        Attribute::Ints(values.iter().map(|&value| value.into()).collect())
    }

    pub fn dims(values: &[usize]) -> Attribute {
        Attribute::Ints(values.iter().map(|&value| value as i64).collect())
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Attribute::None => "none",
            Attribute::Int(_) => "an int",
            Attribute::Float(_) => "a float",
            Attribute::Bool(_) => "a bool",
            Attribute::DType(_) => "a dtype",
            Attribute::Ints(_) => "a list of ints",
        }
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Attribute::None => f.write_str("none"),
            Attribute::Int(value) => write!(f, "{value}"),
            Attribute::Float(value) => write!(f, "{value:?}"),
            Attribute::Bool(value) => write!(f, "{value}"),
            Attribute::DType(dtype) => write!(f, "{dtype}"),
            Attribute::Ints(values) => {
                f.write_str("[")?;
                for (index, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if index > 0 { "," } else { "" })?;
                }
                f.write_str("]")
            }
        }
    }
}

/// The attributes of one instruction, in the order its operation declares them.
pub type Attributes = SmallVec<[Attribute; 2]>;

/// One use of an operation: `output := operation(operands; attributes)`.
#[derive(Clone, PartialEq, Debug)]
pub struct Instruction {
    pub operation: &'static Operation,
    pub output: TensorId,
    pub operands: Operands,
    pub attributes: Attributes,
    /// The user's line that issued it, for errors.
    pub source: SourceId,
    /// The signal scope it was issued in, 0 for none.
    pub signal: u32,
}

/// As the log and `explain` write it: `TENSOR[3] := ADD TENSOR[0] TENSOR[2]`.
impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TENSOR[{}] := {}", self.output, self.operation.name.to_uppercase())?;
        for operand in &self.operands {
            match operand {
                Operand::Tensor(id) => write!(f, " TENSOR[{id}]")?,
                Operand::Scalar(scalar) => write!(f, " {scalar}")?,
            }
        }
        for (spec, attribute) in self.operation.attributes.iter().zip(&self.attributes) {
            if *attribute != Attribute::None {
                write!(f, " {}={attribute}", spec.name)?;
            }
        }
        Ok(())
    }
}

/// What a client puts on the stream to the dispatcher, and the dispatcher on a worker's.
#[derive(Clone, PartialEq, Debug)]
pub enum Command {
    /// Compute.
    Run(Instruction),
    /// Make a tensor from data, in a signal's scope (0 for none).
    Create { output: TensorId, content: Content, signal: u32 },
    /// Answer with a tensor's value, for this line; by shared memory if the asker can read it.
    Fetch { request: RequestId, tensor: TensorId, shared: bool, line: SourceId },
    /// Forget a tensor.
    Free(TensorId),
    /// Forget all tensors of a session; the dispatcher's to send, never a client's.
    EndSession { session: u32 },
    /// Say what a signal's number means; sent before its first use and when that changes.
    Signal { number: u32, name: String, shard: Option<Shard> },
    /// Answer with statistics.
    Stats { request: RequestId },
    /// Answer with the shape and dtype of every tensor of a session; the dispatcher's to send.
    Describe { session: u32 },
    /// Begin to note what is planned; or end it, and answer with what was.
    Explain { request: RequestId, begin: bool },
    /// Answer with a tensor's placement.
    Locate { request: RequestId, tensor: TensorId },
    /// Answer with how the dispatcher, its workers and its sessions are.
    Status { request: RequestId },
    /// Make moves of more bytes than this errors, unless a scope or a sum asks for them.
    Strict { limit: Option<u64> },
    /// Exchange blocks with other workers; the dispatcher's to send, never a client's.
    Exchange(Box<Exchange>),
    /// A sequence that may be invoked from now on. Nothing is computed.
    Define(Box<Definition>),
    /// Compute a pass of a template, or a part of one.
    Invoke(Box<Invocation>),
    /// A worker's part of passes to come; the dispatcher's to send, as the next.
    Script(Box<Script>),
    /// Do a pass of a script. It is the same for all workers.
    Play(Arc<Play>),
}

impl Command {
    /// What it counts in flow control: 1, and more for data, so that a window bounds memory.
    pub fn weight(&self) -> u64 {
        match self {
            Command::Create { content, .. } => 1 + (content.meta().bytes() >> 14) as u64,
            Command::Define(definition) => definition.steps.len() as u64,
            Command::Invoke(invocation) => {
                u64::from(invocation.last.saturating_sub(invocation.first)).max(1)
            }
            Command::Script(script) => script.steps.len().max(1) as u64,
            Command::Play(play) => u64::from(play.weight).max(1),
            _ => 1,
        }
    }

    /// Its length in bytes on the wire as the first of a message, data included. Later ones are
    /// shorter: ids stand as differences.
    pub fn wire_bytes(&self) -> usize {
        // The kind, then the fields; see the codec, whose tests hold the two together.
        1 + match self {
            Command::Run(instruction) => instruction_bytes(instruction, 0),
            Command::Create { output, content, signal } => {
                let meta = 2 + 8 * content.meta().shape.rank();
                let values = match content {
                    Content::Data(data) => 8 + data.bytes.len(),
                    Content::Shared { .. } => 4 + 4 + 8 + 16,
                };
                near_bytes(output.0, 0) + varint_bytes(u64::from(*signal)) + 1 + meta + values
            }
            Command::Fetch { tensor, .. } => 8 + near_bytes(tensor.0, 0) + 1 + 4,
            Command::Free(tensor) => near_bytes(tensor.0, 0),
            Command::EndSession { .. } => 4,
            Command::Signal { name, shard, .. } => {
                let shard = shard.as_ref().map_or(0, |shard| 2 + shard_bytes(shard));
                4 + 4 + name.len() + 1 + shard
            }
            Command::Stats { .. } | Command::Status { .. } => 8,
            Command::Describe { .. } => 4,
            Command::Explain { .. } => 8 + 1,
            Command::Locate { tensor, .. } => 8 + near_bytes(tensor.0, 0),
            Command::Strict { limit } => 1 + limit.map_or(0, |_| 8),
            Command::Exchange(exchange) => exchange_bytes(exchange),
            Command::Define(definition) => definition_bytes(definition),
            Command::Invoke(invocation) => invocation_bytes(invocation),
            Command::Script(script) => script_bytes(script),
            Command::Play(play) => play_bytes(play),
        }
    }
}

fn script_bytes(script: &Script) -> usize {
    let name = |name: &Name| {
        let (Name::Own(place) | Name::Made(place) | Name::Outside(place)) = name;
        1 + varint_bytes(u64::from(*place))
    };
    let optional = |of: &Option<Name>| 1 + of.as_ref().map_or(0, name);
    let operand = |operand: &ScriptOperand| match operand {
        ScriptOperand::Tensor(of) => name(of),
        ScriptOperand::Number(slot) => 1 + varint_bytes(u64::from(*slot)),
        ScriptOperand::Constant(scalar) => 1 + scalar_bytes(*scalar),
    };
    let step = |step: &ScriptStep| match step {
        ScriptStep::Run { operation, output, operands, attributes, source, signal } => {
            let operands_bytes: usize = operands.iter().map(operand).sum();
            1 + varint_bytes(u64::from(operation.id))
                + name(output)
                + varint_bytes(operands.len() as u64)
                + operands_bytes
                + 1
                + attributes.iter().map(attribute_bytes).sum::<usize>()
                + varint_bytes(u64::from(source.0))
                + varint_bytes(u64::from(*signal))
        }
        ScriptStep::Exchange { exchange, transfer, input, output } => {
            1 + exchange_bytes(exchange)
                + varint_bytes(u64::from(*transfer))
                + optional(input)
                + optional(output)
        }
        ScriptStep::Free(of) => 1 + name(of),
    };
    let steps: usize = script.steps.iter().map(step).sum();
    let base = script.bases[0].0;
    let tensors: usize = script.tensors.iter().map(|id| near_bytes(id.0, base)).sum();
    let numbers: usize = script.numbers.iter().map(|number| scalar_bytes(*number)).sum();
    let counts = [
        u64::from(script.session),
        u64::from(script.number),
        script.widths[0],
        script.widths[1],
        script.tensors.len() as u64,
        script.numbers.len() as u64,
        script.steps.len() as u64,
    ];
    let counts: usize = counts.into_iter().map(varint_bytes).sum();
    1 + counts
        + near_bytes(base, 0)
        + near_bytes(script.bases[1].0, base)
        + tensors
        + numbers
        + steps
}

fn play_bytes(play: &Play) -> usize {
    let base = play.bases[0].0;
    let counts = [u64::from(play.session), u64::from(play.script), u64::from(play.weight)];
    let counts: usize = counts.into_iter().map(varint_bytes).sum();
    let changes = changes_bytes(&play.tensors, &play.numbers, base);
    counts + near_bytes(base, 0) + near_bytes(play.bases[1].0, base) + 8 + changes
}

/// Tensors and numbers that are others than predicted, each list after its length.
fn changes_bytes(tensors: &[(u32, TensorId)], numbers: &[(u32, Scalar)], base: u64) -> usize {
    let slot = |slot: u32| varint_bytes(u64::from(slot));
    let names: usize = tensors.iter().map(|(at, id)| slot(*at) + near_bytes(id.0, base)).sum();
    let values: usize = numbers.iter().map(|(at, value)| slot(*at) + scalar_bytes(*value)).sum();
    varint_bytes(tensors.len() as u64) + names + varint_bytes(numbers.len() as u64) + values
}

fn definition_bytes(definition: &Definition) -> usize {
    let mut last = definition.base.0;
    let steps: usize = definition
        .steps
        .iter()
        .map(|step| {
            1 + step.as_ref().map_or(0, |instruction| {
                let bytes = instruction_bytes(instruction, last);
                last = instruction.output.0;
                bytes
            })
        })
        .sum();
    let frees: usize = definition.frees.iter().map(|id| near_bytes(id.0, definition.base.0)).sum();
    let counts = [definition.number as usize, definition.steps.len(), definition.frees.len()];
    let counts: usize = counts.into_iter().map(|count| varint_bytes(count as u64)).sum();
    1 + counts + near_bytes(definition.base.0, 0) + steps + frees
}

fn invocation_bytes(invocation: &Invocation) -> usize {
    let base = invocation.base.0;
    let others: usize = invocation.others.iter().map(|id| near_bytes(id.0, base)).sum();
    let counts = [
        u64::from(invocation.template),
        u64::from(invocation.first),
        u64::from(invocation.last),
        u64::from(invocation.frees),
        invocation.others.len() as u64,
    ];
    let counts: usize = counts.into_iter().map(varint_bytes).sum();
    let changes = changes_bytes(&invocation.tensors, &invocation.numbers, base);
    counts + near_bytes(base, 0) + changes + others
}

/// A number with its kind.
fn scalar_bytes(scalar: Scalar) -> usize {
    match scalar {
        Scalar::Bool(_) => 2,
        Scalar::Int(value) => 1 + near_bytes(value as u64, 0),
        Scalar::Float(_) => 9,
    }
}

fn shard_bytes(shard: &Shard) -> usize {
    let workers = shard.workers.as_ref().map_or(0, |workers| 4 + 4 * workers.len());
    let mesh: usize = shard.mesh.iter().map(|axis| 4 + axis.name.len() + 4 + 1 + 8).sum();
    workers + mesh
}

fn exchange_bytes(exchange: &Exchange) -> usize {
    let block = |rank: usize| 1 + 16 * rank;
    let sends: usize = exchange.sends.iter().map(|(_, part)| 4 + block(part.shape.rank())).sum();
    let sources: usize = exchange
        .sources
        .iter()
        .map(|source| {
            let from = match &source.from {
                Origin::Own(part) => 1 + block(part.shape.rank()),
                Origin::Worker(_) => 1 + 4,
            };
            from + block(source.at.shape.rank())
        })
        .sum();
    let input = 1 + exchange.input.map_or(0, |_| 8);
    let output = 1 + exchange.output.map_or(0, |(_, meta)| 8 + 2 + 8 * meta.shape.rank());
    let joint = 1 + exchange.joint.as_deref().map_or(0, joint_bytes);
    8 + 4 + 1 + input + output + 4 + sends + 4 + sources + 1 + joint + 4
}

fn joint_bytes(joint: &Joint) -> usize {
    let members: usize = joint.members.iter().map(|member| 4 + 4 + member.name.len()).sum();
    4 + joint.kind.len() + 4 + joint.store.len() + 4 + members + 1 + 4
}

fn instruction_bytes(instruction: &Instruction, last: u64) -> usize {
    let output = instruction.output.0;
    let operands: usize = instruction
        .operands
        .iter()
        .map(|operand| match operand {
            Operand::Tensor(id) => 1 + near_bytes(id.0, output),
            Operand::Scalar(scalar) => scalar_bytes(*scalar),
        })
        .sum();
    let attributes: usize = instruction.attributes.iter().map(attribute_bytes).sum();
    let numbers = [
        u64::from(instruction.operation.id),
        u64::from(instruction.source.0),
        u64::from(instruction.signal),
        instruction.operands.len() as u64,
    ];
    let numbers: usize = numbers.into_iter().map(varint_bytes).sum();
    numbers + near_bytes(output, last) + 1 + operands + attributes
}

fn attribute_bytes(attribute: &Attribute) -> usize {
    match attribute {
        Attribute::None => 1,
        Attribute::Bool(_) | Attribute::DType(_) => 2,
        Attribute::Int(value) => 1 + near_bytes(*value as u64, 0),
        Attribute::Float(_) => 9,
        Attribute::Ints(values) => {
            2 + values.iter().map(|&value| near_bytes(value as u64, 0)).sum::<usize>()
        }
    }
}

/// How many bytes a number takes at seven bits each.
fn varint_bytes(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// How many bytes the difference of two numbers takes.
fn near_bytes(value: u64, base: u64) -> usize {
    let difference = value.wrapping_sub(base) as i64;
    varint_bytes((difference << 1 ^ difference >> 63) as u64)
}
