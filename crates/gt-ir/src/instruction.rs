//! Instructions, their operands and attributes, and the ids that they use.

use std::borrow::Cow;
use std::fmt;

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::operation::ResultKind;
use crate::operation::{Meta, Operation};
use crate::ops::custom;
use crate::record;
use crate::scalar::Scalar;
use crate::wire::{Decoded, MadeTensor, Record, Sink, Source};

/// Identifies a tensor of a session. Clients count from 0; tensors that the planner makes count
/// from [`TensorId::PLANNED`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TensorId(pub u64);

impl TensorId {
    /// The first id of the planner's range.
    pub const PLANNED: TensorId = TensorId(1 << 44);

    /// Returns the id `count` after this one. A client's range lasts half a year at a million ids
    /// per second.
    #[must_use]
    pub fn after(self, count: u64) -> TensorId {
        TensorId(self.0.wrapping_add(count))
    }
}

impl fmt::Display for TensorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Identifies a request that awaits its answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct RequestId(pub u64);

record!(struct RequestId(number));

/// Identifies a line of the user's program; only the client can resolve it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct SourceId(pub u32);

record!(struct SourceId(number));

/// An operand: a tensor (represented by `T`) or a number.
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

    /// Returns the number, if it is one.
    pub fn scalar(&self) -> Option<Scalar> {
        match self {
            Operand::Tensor(_) => None,
            Operand::Scalar(scalar) => Some(*scalar),
        }
    }

    /// Returns the operand with its tensor mapped.
    pub fn map<U>(&self, f: impl FnOnce(&T) -> U) -> Operand<U> {
        match self {
            Operand::Tensor(tensor) => Operand::Tensor(f(tensor)),
            Operand::Scalar(scalar) => Operand::Scalar(*scalar),
        }
    }
}

/// The operands of one instruction.
pub type Operands<T = TensorId> = SmallVec<[Operand<T>; 3]>;

/// An argument of an operation that is part of a program's structure. Scalars that may change from
/// step to step (a learning rate) are operands instead.
#[derive(Clone, PartialEq, Debug)]
pub enum Attribute {
    None,
    Int(i64),
    Float(f64),
    Bool(bool),
    DType(DType),
    /// Up to two are stored inline: most lists have an entry for each axis of a matrix.
    Ints(SmallVec<[i64; 2]>),
}

impl Attribute {
    pub fn ints<I: Into<i64> + Copy>(values: &[I]) -> Attribute {
        Attribute::Ints(values.iter().map(|&value| value.into()).collect())
    }

    /// Returns a text as its bytes in UTF-8.
    pub fn text(text: &str) -> Attribute {
        Attribute::ints(text.as_bytes())
    }

    /// Returns the text whose bytes the ints are; `None` unless they are valid UTF-8.
    pub fn as_text(&self) -> Option<String> {
        let Attribute::Ints(bytes) = self else { return None };
        let bytes: Option<Vec<u8>> = bytes.iter().map(|&byte| u8::try_from(byte).ok()).collect();
        String::from_utf8(bytes?).ok()
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

/// Shape and dtype of each tensor that an instruction makes.
pub type Results = SmallVec<[Meta; 1]>;

/// One use of an operation: `output := operation(operands; attributes)`.
#[derive(Clone, PartialEq, Debug)]
pub struct Instruction {
    pub operation: &'static Operation,
    /// The first tensor that it makes; any others have consecutive ids.
    pub output: TensorId,
    /// The metas of its results as the issuer declares them. The worker fails the instruction if
    /// inference disagrees.
    pub results: Results,
    pub operands: Operands,
    pub attributes: Attributes,
    /// The user's line that issued it, for errors.
    pub source: SourceId,
    /// The signal scope it was issued in, 0 for none.
    pub signal: u32,
}

impl Instruction {
    /// The tensors that it makes.
    pub fn outputs(&self) -> impl Iterator<Item = (TensorId, Meta)> + '_ {
        let names = (0..).map(|index| self.output.after(index));
        names.zip(self.results.iter().copied())
    }

    /// Checks it against its operands' metas: the inferred results must equal the declared ones.
    ///
    /// # Errors
    /// A description of the mismatch.
    pub fn check(&self, metas: &[Operand<Meta>]) -> Result<(), String> {
        let results = self.operation.results(metas, &self.attributes);
        let results = results.map_err(|error| error.to_string())?;
        if results == self.results {
            return Ok(());
        }
        let (count, declared) = (results.len(), self.results.len());
        if count != declared {
            return Err(format!("{declared} results are declared, and it has {count}"));
        }
        let mut pairs = self.results.iter().zip(&results);
        let (declared, meta) = pairs.find(|(one, other)| one != other).expect("they differ");
        Err(format!(
            "its result is declared as {} {}, but is {} {}",
            declared.dtype, declared.shape, meta.dtype, meta.shape
        ))
    }

    /// Returns its name in errors and in the log.
    pub fn title(&self) -> Cow<'static, str> {
        custom::title(self.operation, &self.attributes)
    }

    /// Returns its name and operands: `add of float32 (2, 3) and 1.5`.
    pub fn describe(&self, metas: &[Operand<Meta>]) -> String {
        let operands = metas.iter().map(|operand| match operand {
            Operand::Tensor(meta) => format!("{} {}", meta.dtype, meta.shape),
            Operand::Scalar(scalar) => scalar.to_string(),
        });
        let (name, operands) = (self.title(), operands.collect::<Vec<_>>());
        if operands.is_empty() {
            return name.into_owned();
        }
        format!("{name} of {}", operands.join(" and "))
    }

    /// Returns shape and dtype of the first tensor that it makes.
    pub fn meta(&self) -> Meta {
        self.results[0]
    }

    /// The tensors that it reads, with repetitions.
    pub fn reads(&self) -> impl Iterator<Item = TensorId> + '_ {
        self.operands.iter().filter_map(Operand::tensor).copied()
    }
}

/// The output is written before the operands, which are encoded relative to it.
impl Record for Instruction {
    #[inline]
    fn write<S: Sink>(&self, to: &mut S) {
        self.operation.write(to);
        MadeTensor(self.output).write(to);
        self.results.write(to);
        self.operands.write(to);
        self.attributes.write(to);
        self.source.write(to);
        self.signal.write(to);
    }

    #[inline]
    fn read(from: &mut Source) -> Decoded<Instruction> {
        Ok(Instruction {
            operation: Record::read(from)?,
            output: MadeTensor::read(from)?.0,
            results: Record::read(from)?,
            operands: Record::read(from)?,
            attributes: Record::read(from)?,
            source: Record::read(from)?,
            signal: Record::read(from)?,
        })
    }
}

/// The form in the log and in `explain`: `TENSOR[3] := ADD TENSOR[0] TENSOR[2]`.
impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_custom = self.operation.facts.result == ResultKind::UserCode;
        let title = self.title();
        let title = if is_custom { title } else { title.to_uppercase().into() };
        write!(f, "TENSOR[{}] := {title}", self.output)?;
        for operand in &self.operands {
            match operand {
                Operand::Tensor(id) => write!(f, " TENSOR[{id}]")?,
                Operand::Scalar(scalar) => write!(f, " {scalar}")?,
            }
        }
        for (of, attribute) in self.operation.named(&self.attributes) {
            if *attribute != Attribute::None && !(is_custom && of.name == "name") {
                write!(f, " {}={}", of.name, of.shown(attribute))?;
            }
        }
        Ok(())
    }
}
