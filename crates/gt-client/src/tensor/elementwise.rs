//! Elementwise operations.

use gt_ir::instruction::Attribute;
use gt_ir::ops::{ternary, unary};
use gt_ir::{DType, Operand, Scalar};
use smallvec::smallvec;

use super::Tensor;
use crate::error::{ClientError, Result};
use crate::session::Session;

impl<'a> From<&'a Tensor> for Value<'a> {
    fn from(tensor: &'a Tensor) -> Value<'a> {
        Value(Operand::Tensor(tensor))
    }
}

impl<S: Into<Scalar>> From<S> for Value<'_> {
    fn from(scalar: S) -> Self {
        Value(Operand::Scalar(scalar.into()))
    }
}

/// An operand: a tensor or a number.
#[derive(Clone, Copy)]
pub struct Value<'a>(pub Operand<&'a Tensor>);

impl Tensor {
    /// Returns the values in another dtype; the tensor itself if it has that dtype already.
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Result<Tensor> {
        if self.dtype() == dtype { Ok(self.clone()) } else { self.cast_always(dtype) }
    }

    /// Like [`Tensor::cast`], but always issues an instruction.
    #[track_caller]
    pub(crate) fn cast_always(&self, dtype: DType) -> Result<Tensor> {
        self.apply_unary(&unary::CAST, smallvec![Attribute::DType(dtype)])
    }

    /// Returns `a` where `condition` is true, and `b` elsewhere.
    #[track_caller]
    pub fn select<'a>(
        condition: &Tensor,
        a: impl Into<Value<'a>>,
        b: impl Into<Value<'a>>,
    ) -> Result<Tensor> {
        let operands = [Operand::Tensor(condition), a.into().0, b.into().0];
        Tensor::apply(&condition.session(), &ternary::WHERE, &operands, smallvec![])
    }

    /// Limits the values to at least `low` and at most `high`; `None` is no limit.
    ///
    /// # Errors
    /// Both limits are `None`.
    #[track_caller]
    pub fn clamp<'a>(&'a self, low: Option<Value<'a>>, high: Option<Value<'a>>) -> Result<Tensor> {
        let whole = |given: &Option<Value<'a>>| match given.as_ref().map(|value| &value.0) {
            Some(Operand::Tensor(limit)) => limit.dtype().range().is_some(),
            Some(Operand::Scalar(limit)) => !matches!(limit, Scalar::Float(_)),
            None => true,
        };
        let all_whole = self.dtype().range().is_some() && whole(&low) && whole(&high);
        let limit = |given: Option<Value<'a>>, float: f64, whole: i64| match given {
            Some(value) => value.0,
            None if all_whole => Operand::Scalar(Scalar::Int(whole)),
            None => Operand::Scalar(Scalar::Float(float)),
        };
        if low.is_none() && high.is_none() {
            return Err(ClientError::usage("clamp: give min, max or both"));
        }
        let operands = [
            Operand::Tensor(self),
            limit(low, f64::NEG_INFINITY, i64::MIN),
            limit(high, f64::INFINITY, i64::MAX),
        ];
        Tensor::apply(&self.session(), &ternary::CLAMP, &operands, smallvec![])
    }

    /// Returns `self + b * c`, computed by one instruction.
    #[track_caller]
    pub fn mul_add<'a>(&self, b: impl Into<Value<'a>>, c: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), b.into().0, c.into().0];
        Tensor::apply(&self.session(), &ternary::MUL_ADD, &operands, smallvec![])
    }

    /// Applies an operation to two operands of which at least one is a tensor, also for reflected
    /// operators.
    #[track_caller]
    pub fn apply_binary(
        session: &Session,
        operation: &'static gt_ir::Operation,
        left: Value,
        right: Value,
    ) -> Result<Tensor> {
        Tensor::apply(session, operation, &[left.0, right.0], smallvec![])
    }
}
