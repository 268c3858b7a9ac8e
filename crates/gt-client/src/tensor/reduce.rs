//! Reductions, and operations along an axis.

use gt_ir::Operation;
use gt_ir::instruction::Attribute;
use gt_ir::ops::{nn, reduce};
use gt_ir::shape::axis;
use smallvec::smallvec;

use super::Tensor;
use crate::error::Result;

macro_rules! reductions {
    ($($name:ident => $operation:path, $doc:literal;)*) => {
        $(#[doc = $doc]
        ///
        /// Over `axes`, or over all where there are none; reduced axes stay with length 1 if
        /// `keepdims`.
        #[track_caller]
        pub fn $name(&self, axes: &[i64], keepdims: bool) -> Result<Tensor> {
            self.reduce(&$operation, axes, keepdims)
        })*
    };
}

impl Tensor {
    #[track_caller]
    pub fn reduce(
        &self,
        operation: &'static Operation,
        axes: &[i64],
        keepdims: bool,
    ) -> Result<Tensor> {
        self.apply_unary(operation, smallvec![Attribute::ints(axes), Attribute::Bool(keepdims)])
    }

    reductions! {
        sum => reduce::SUM, "The sum; int64 for bool and integers.";
        mean => reduce::MEAN, "The arithmetic mean of floats.";
        prod => reduce::PROD, "The product; int64 for bool and integers.";
        amax => reduce::AMAX, "The largest value.";
        amin => reduce::AMIN, "The smallest value.";
        argmax => reduce::ARGMAX, "Where the largest value is, the first of equals.";
        argmin => reduce::ARGMIN, "Where the smallest value is, the first of equals.";
        any => reduce::ANY, "Whether any value is not zero.";
        all => reduce::ALL, "Whether all values are not zero.";
        logsumexp => nn::LOGSUMEXP, "The logarithm of the sum of exponentials.";
    }

    /// The variance over (n - correction).
    #[track_caller]
    pub fn var(&self, axes: &[i64], keepdims: bool, correction: i64) -> Result<Tensor> {
        self.apply_unary(&reduce::VAR, spread(axes, keepdims, correction))
    }

    /// The standard deviation over (n - correction).
    #[track_caller]
    pub fn std(&self, axes: &[i64], keepdims: bool, correction: i64) -> Result<Tensor> {
        self.apply_unary(&reduce::STD, spread(axes, keepdims, correction))
    }

    /// Sums of all values up to each along an axis.
    #[track_caller]
    pub fn cumsum(&self, axis: i64) -> Result<Tensor> {
        self.apply_unary(&reduce::CUMSUM, smallvec![Attribute::Int(axis)])
    }

    /// exp(x) over its sum along an axis.
    #[track_caller]
    pub fn softmax(&self, axis: i64) -> Result<Tensor> {
        self.apply_unary(&nn::SOFTMAX, smallvec![Attribute::Int(axis)])
    }

    /// The logarithm of softmax.
    #[track_caller]
    pub fn log_softmax(&self, axis: i64) -> Result<Tensor> {
        self.apply_unary(&nn::LOG_SOFTMAX, smallvec![Attribute::Int(axis)])
    }

    /// The largest value along one axis and where it is; its gradient goes to that place alone.
    #[track_caller]
    pub fn max_with_index(&self, along: i64, keepdims: bool) -> Result<(Tensor, Tensor)> {
        self.extreme("max", &reduce::ARGMAX, along, keepdims)
    }

    /// The smallest value along one axis and where it is.
    #[track_caller]
    pub fn min_with_index(&self, along: i64, keepdims: bool) -> Result<(Tensor, Tensor)> {
        self.extreme("min", &reduce::ARGMIN, along, keepdims)
    }

    #[track_caller]
    fn extreme(
        &self,
        name: &'static str,
        operation: &'static Operation,
        along: i64,
        keepdims: bool,
    ) -> Result<(Tensor, Tensor)> {
        let at = axis(along, self.rank(), name)?;
        if self.rank() == 0 {
            let index = self.reduce(operation, &[], false)?;
            return Ok((self.copy()?, index));
        }
        let index = self.reduce(operation, &[at as i64], true)?;
        let values = self.gather(at as i64, &index)?;
        if keepdims {
            return Ok((values, index));
        }
        Ok((values.squeeze(&[at as i64])?, index.squeeze(&[at as i64])?))
    }
}

fn spread(axes: &[i64], keepdims: bool, correction: i64) -> gt_ir::Attributes {
    smallvec![Attribute::ints(axes), Attribute::Bool(keepdims), Attribute::Int(correction)]
}
