//! The definition of an operation: a plain struct with everything that is independent of engines.

use smallvec::SmallVec;

pub mod facts;
mod graph;
mod parameter;

use crate::batching::Batching;
use crate::error::{Error, Result};
use crate::instruction::{Attribute, Attributes, Operand, Results};
use crate::number::Numbers;
use crate::ops::{self, commit};
use crate::scalar::Scalar;
use crate::sharding::{self, Localize, Sharding};

pub use facts::{Accuracy, Autocast, ErrorBound, Facts, ResultKind, TermCount};
pub use graph::{Graph, Saved, Var};
pub use parameter::{Default, Parameter, ParameterKind, face};
/// Constructors of parameters.
pub mod takes {
    pub use super::parameter::{
        choice, dim, dims, dtype, flag, float, int, ints, optional_dtype, size, tensor, tensors,
        text, value,
    };
}

pub use crate::call::{Call, Meta, bool, dtype, float, int, ints};

/// The families of operations in the log and in views.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Family {
    Create,
    Unary,
    Binary,
    Ternary,
    Reduce,
    Matmul,
    Convolution,
    Reshape,
    Slice,
    Concat,
    Index,
}

impl Family {
    /// The command name in the instruction log.
    pub const fn log_name(self) -> &'static str {
        match self {
            Family::Create => "CreateTensor",
            Family::Unary => "UnaryOp",
            Family::Binary | Family::Matmul | Family::Convolution => "BinaryOp",
            Family::Ternary => "TernaryOp",
            Family::Reduce => "ReduceOp",
            Family::Reshape => "ReshapeOp",
            Family::Slice => "SliceOp",
            Family::Concat => "ConcatOp",
            Family::Index => "IndexOp",
        }
    }
}

/// The kind of value that an attribute takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttributeKind {
    Int,
    Float,
    Bool,
    DType,
    /// A dtype, or none for the default.
    OptionalDType,
    Ints,
}

/// The gradient of an operation with respect to each of its operands.
///
/// A rule returns the gradient for the broadcast shape and the promoted dtype; its caller sums over
/// broadcast axes and casts back.
#[derive(Clone, Copy)]
pub enum Gradient {
    /// No gradient: creation, comparisons, integers.
    None,
    /// One rule for each operand.
    Each(&'static [Rule]),
    /// One rule for any operand, by its index: variadic operations.
    Any(fn(&mut dyn Graph, &Saved, usize) -> Var),
    /// One rule for all operands, whose gradients share computations.
    AllOperands(AllOperandsRule),
}

/// Builds the gradient of one operand from the values saved when the operation was issued.
pub type Rule = fn(&mut dyn Graph, &Saved) -> Var;

/// Builds the gradients of the requested operands; `None` for an operand without gradient.
pub type AllOperandsRule = fn(&mut dyn Graph, &Saved, &[bool]) -> SmallVec<[Option<Var>; 4]>;

/// The placeholder rule of an operand without gradient (an index, a condition).
pub const NO_GRADIENT: Rule = |_, _| unreachable!("the operand takes no gradient");

/// How an operation and its gradient treat complex numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ComplexRule {
    /// Complex operands are an error.
    Refused,
    /// It is holomorphic, so that the gradient follows from the rule for real numbers: by PyTorch's
    /// convention, it is the conjugate of the rule's value for the conjugate of the result's
    /// gradient.
    Holomorphic,
    /// Its gradient rule holds for complex numbers as it is.
    OwnRule,
}

/// The expansion of a composite operation, for engines that do not lower it.
#[derive(Clone, Copy)]
pub enum Body {
    Primitive,
    Composite(fn(&mut dyn Graph, &[Operand<Var>], &Attributes) -> Var),
}

/// Bits for [`Operation::saves`]: which values the gradient rules read.
pub const OUTPUT: u8 = 1 << 7;
pub const FIRST: u8 = 1;
pub const SECOND: u8 = 2;
pub const THIRD: u8 = 4;
pub const FOURTH: u8 = 8;
pub const FIFTH: u8 = 16;
pub const SIXTH: u8 = 32;

/// An operation, independent of engines.
#[derive(Clone, Copy)]
pub struct Operation {
    /// Its stable id on the wire.
    pub id: u16,
    pub name: &'static str,
    pub family: Family,
    /// One line on its result; the docstring of its function for users.
    pub doc: &'static str,
    /// Its parameters, as users write them.
    pub parameters: &'static [Parameter],
    /// The namespaces that users call it from: a sum of the constants in [`face`].
    pub face: u8,
    /// Other names of the operation.
    pub aliases: &'static [&'static str],
    /// An example as a Python doctest: a call and its output.
    pub example: &'static str,
    /// Infers shape and dtype of the result, or an error.
    pub infer: fn(&Call) -> Result<Meta>,
    /// Infers the results after the first one, given that, for an operation that has several. They
    /// are sharded like the first one.
    pub further: Option<fn(&Call, Meta) -> Results>,
    pub gradient: Gradient,
    pub complex: ComplexRule,
    /// The operands, as bits, for which no derivative rule exists: requesting their gradients is an
    /// error.
    pub underived: u8,
    /// The values that the gradient rules read: a sum of the bits above.
    pub saves: u8,
    pub body: Body,
    /// Whether its body passes numbers on without depending on their values, so that one expansion
    /// holds for any numbers.
    pub open_numbers: bool,
    /// How numbers that the dtype cannot represent are treated.
    pub numbers: Numbers,
    /// The axes along which it can be sharded.
    pub sharding: Sharding,
    /// Derives a part's attributes, if they differ from those of the whole instruction.
    pub localize: Option<Localize>,
    /// How it is computed for a batch of operands.
    pub batching: Batching,
    /// Whether its shape depends on data: an attribute has the number of values, for which the
    /// client has waited.
    pub data_dependent: bool,
    /// What other crates act on.
    pub facts: Facts,
    /// Calls for the tests.
    pub samples: fn() -> Vec<Sample>,
}

/// An operation without facts: what declarations of a family share. A declaration adds its own
/// facts, so that none can be forgotten.
#[derive(Clone, Copy)]
pub struct Defaults(pub(crate) Operation);

impl Defaults {
    /// Returns the operation with these facts.
    pub const fn with(self, facts: Facts) -> Operation {
        Operation { facts, ..self.0 }
    }
}

impl Operation {
    /// Returns the defaults, which declarations of operations override.
    pub const fn base() -> Defaults {
        // Replaced by `Defaults::with`.
        let facts = facts::facts(Autocast::Unchanged, ErrorBound::Estimated, ResultKind::Computed);
        Defaults(Operation {
            id: 0,
            name: "",
            family: Family::Unary,
            doc: "",
            parameters: &[],
            face: face::HIDDEN,
            aliases: &[],
            example: "",
            infer: |_| unreachable!("every operation has its own rule"),
            further: None,
            gradient: Gradient::None,
            complex: ComplexRule::Refused,
            underived: 0,
            saves: 0,
            body: Body::Primitive,
            open_numbers: false,
            numbers: Numbers::Converted,
            sharding: sharding::whole,
            localize: None,
            batching: Batching::Each,
            data_dependent: false,
            facts,
            samples: Vec::new,
        })
    }

    /// The operation with this id.
    pub fn from_id(id: u16) -> Option<&'static Operation> {
        ops::BY_ID.get(usize::from(id)).copied().flatten()
    }

    /// Returns the estimated cost, in bytes read and written; a matrix product or a convolution
    /// counts like an elementwise operation that takes equally long.
    pub fn work(&self, operands: &[Operand<Meta>], output: Meta) -> u64 {
        // It reads no values.
        if commit::is_commit(self) {
            return 1;
        }
        let read: usize = operands.iter().filter_map(Operand::tensor).map(Meta::bytes).sum();
        let inner = match (self.family, operands) {
            (Family::Matmul, [Operand::Tensor(left), ..]) => {
                left.shape.last().copied().unwrap_or(1) / 32
            }
            (Family::Convolution, [_, Operand::Tensor(weight)]) => {
                weight.shape[1..].iter().product::<usize>() / 32
            }
            _ => 1,
        };
        (read + output.bytes() * inner.max(1)) as u64
    }

    pub fn from_name(name: &str) -> Option<&'static Operation> {
        ops::ALL.iter().copied().find(|operation| operation.name == name)
    }

    /// Checks operand count and attribute kinds, then infers shape and dtype. Calls from other
    /// processes are checked here, so that inference rules may rely on both.
    pub fn check(
        &'static self,
        operands: &[Operand<Meta>],
        attributes: &Attributes,
    ) -> Result<Meta> {
        self.check_operands(operands)?;
        self.check_attributes(attributes)?;
        self.check_complex(operands)?;
        (self.infer)(&Call { operation: self.name, operands, attributes })
    }

    /// Checks a call, and infers shape and dtype of every result.
    ///
    /// # Errors
    /// As for [`Operation::check`].
    pub fn results(
        &'static self,
        operands: &[Operand<Meta>],
        attributes: &Attributes,
    ) -> Result<Results> {
        let first = self.check(operands, attributes)?;
        let mut results = Results::from_buf([first]);
        if let Some(further) = self.further {
            let call = Call { operation: self.name, operands, attributes };
            results.extend(further(&call, first));
        }
        Ok(results)
    }

    /// Returns the parameters that become attributes, in order.
    pub fn attributes(&self) -> impl Iterator<Item = (&'static Parameter, AttributeKind)> {
        self.parameters.iter().filter_map(|of| Some((of, of.attribute()?)))
    }

    /// Returns the attributes of an instruction with the parameters that declare them.
    pub fn named<'a>(
        &self,
        attributes: &'a [Attribute],
    ) -> impl Iterator<Item = (&'static Parameter, &'a Attribute)> {
        self.attributes().map(|(of, _)| of).zip(attributes)
    }

    /// Returns the index of the attribute whose values may change between iterations, if any.
    pub fn varying_attribute(&self) -> Option<usize> {
        self.attributes().position(|(of, _)| of.varies)
    }

    fn check_operands(&self, operands: &[Operand<Meta>]) -> Result<()> {
        let wanted = self.parameters.iter().filter(|of| of.attribute().is_none());
        if let [Parameter { kind: ParameterKind::Tensors, .. }, ..] = self.parameters {
            if operands.is_empty() {
                return Err(self.wrong_count(0, "at least 1".to_string()));
            }
            return Ok(());
        }
        let count = wanted.count();
        if operands.len() != count {
            return Err(self.wrong_count(operands.len(), count.to_string()));
        }
        Ok(())
    }

    fn check_complex(&self, operands: &[Operand<Meta>]) -> Result<()> {
        if self.complex != ComplexRule::Refused {
            return Ok(());
        }
        match operands.iter().filter_map(Operand::tensor).find(|meta| meta.dtype.is_complex()) {
            None => Ok(()),
            Some(meta) => Err(Error::DTypeMismatch {
                operation: self.name,
                given: meta.dtype,
                expected: "a dtype that is not complex: it has no meaning for complex numbers",
            }),
        }
    }

    #[cold]
    fn wrong_count(&self, given: usize, expected: String) -> Error {
        Error::OperandCount { operation: self.name, given, expected }
    }

    fn check_attributes(&self, attributes: &Attributes) -> Result<()> {
        let mut given = attributes.iter();
        let kinds_fit = self.attributes().all(|(of, kind)| {
            let given = given.next();
            match (kind, given) {
                (AttributeKind::Int, Some(&Attribute::Int(value))) => match of.kind {
                    ParameterKind::Choice(words) => (0..words.len() as i64).contains(&value),
                    _ => true,
                },
                (AttributeKind::Float, Some(Attribute::Float(_)))
                | (AttributeKind::Bool, Some(Attribute::Bool(_)))
                | (
                    AttributeKind::DType | AttributeKind::OptionalDType,
                    Some(Attribute::DType(_)),
                )
                | (AttributeKind::OptionalDType, Some(Attribute::None))
                | (AttributeKind::Ints, Some(Attribute::Ints(_))) => true,
                _ => false,
            }
        });
        if kinds_fit && given.next().is_none() {
            return Ok(());
        }
        Err(Error::BadAttribute {
            operation: self.name,
            attribute: "list",
            given: format!("{attributes:?}"),
            expected: "what the operation declares",
        })
    }
}

/// Operations are equal if their ids are, which are unique.
impl PartialEq for Operation {
    fn eq(&self, other: &Operation) -> bool {
        self.id == other.id
    }
}

impl std::fmt::Debug for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// A test case of an operation: operands (with the range that values are drawn from) and
/// attributes.
#[derive(Clone, Debug)]
pub struct Sample {
    pub operands: SmallVec<[SampleOperand; 3]>,
    pub attributes: Attributes,
}

#[derive(Clone, Copy, Debug)]
pub enum SampleOperand {
    /// A tensor with values drawn from `low..high`.
    Tensor {
        meta: Meta,
        low: f64,
        high: f64,
    },
    Scalar(Scalar),
}
