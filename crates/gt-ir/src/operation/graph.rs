//! Graphs: the interface by which gradient rules and bodies of composites emit operations.

use super::{Operation, bool, float, int, ints};
use crate::call::Meta;
use crate::instruction::{Attributes, Operand};
use crate::scalar::Scalar;
use crate::shape::Shape;

/// A value in a [`Graph`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Var(pub u32);

impl Var {
    /// Returns result `index` of the operation whose first result this is.
    #[must_use]
    pub fn result(self, index: u32) -> Var {
        Var(self.0 + index)
    }
}

impl From<Var> for Operand<Var> {
    fn from(var: Var) -> Operand<Var> {
        Operand::Tensor(var)
    }
}

impl From<f64> for Operand<Var> {
    fn from(value: f64) -> Operand<Var> {
        Operand::Scalar(Scalar::Float(value))
    }
}

impl From<i64> for Operand<Var> {
    fn from(value: i64) -> Operand<Var> {
        Operand::Scalar(Scalar::Int(value))
    }
}

impl From<bool> for Operand<Var> {
    fn from(value: bool) -> Operand<Var> {
        Operand::Scalar(Scalar::Bool(value))
    }
}

/// The builder to which gradient rules and composite bodies emit operations. A client makes each an
/// instruction, a worker a step of a plan.
pub trait Graph {
    /// Adds an operation, which must be valid, and returns its first result; further results have
    /// consecutive numbers.
    fn emit(
        &mut self,
        operation: &'static Operation,
        operands: &[Operand<Var>],
        attributes: Attributes,
    ) -> Var;

    fn meta(&self, var: Var) -> Meta;

    /// Returns whether a value is a transpose of another (in its last two axes), such as a
    /// transposed weight: its gradient is then best computed in the layout of the other.
    fn is_transposed(&self, _: Var) -> bool {
        false
    }
}

/// The inputs of a gradient rule.
pub struct Saved<'a> {
    /// The gradient of the first result.
    pub grad: Var,
    /// The gradients of the other results; `None` where none has arrived.
    pub further_grads: &'a [Option<Var>],
    /// The saved operands; `None` for those that the operation does not save.
    pub operands: &'a [Option<Operand<Var>>],
    pub metas: &'a [Operand<Meta>],
    pub output: Option<Var>,
    /// The results after the first, saved along with it.
    pub further: &'a [Var],
    pub output_meta: Meta,
    pub attributes: &'a Attributes,
}

impl Saved<'_> {
    /// The saved operand at `index`.
    pub fn operand(&self, index: usize) -> Operand<Var> {
        self.operands[index].expect("the operation declares that it saves this operand")
    }

    /// The saved operand at `index`, a tensor.
    pub fn tensor(&self, index: usize) -> Var {
        *self.operand(index).tensor().expect("a saved tensor")
    }

    pub fn output(&self) -> Var {
        self.output.expect("the operation declares that it saves its output")
    }

    /// Shape and dtype of the operand at `index`, which is a tensor.
    pub fn meta(&self, index: usize) -> Meta {
        *self.metas[index].tensor().expect("a tensor operand")
    }

    pub fn shape(&self, index: usize) -> Shape {
        self.meta(index).shape
    }

    pub fn ints(&self, index: usize) -> &[i64] {
        ints(self.attributes, index)
    }

    pub fn int(&self, index: usize) -> i64 {
        int(self.attributes, index)
    }

    pub fn bool(&self, index: usize) -> bool {
        bool(self.attributes, index)
    }

    pub fn float(&self, index: usize) -> f64 {
        float(self.attributes, index)
    }
}
