//! Reductions, and operations along an axis.

use gt_ir::Operation;
use gt_ir::instruction::Attribute;
use gt_ir::ops::reduce;
use gt_ir::shape::axis;
use smallvec::smallvec;

use super::Tensor;
use crate::error::Result;

impl Tensor {
    /// Applies a reduction over `axes`; over all, if none is named.
    #[track_caller]
    pub fn reduce(
        &self,
        operation: &'static Operation,
        axes: &[i64],
        keepdims: bool,
    ) -> Result<Tensor> {
        self.apply_unary(operation, smallvec![Attribute::ints(axes), Attribute::Bool(keepdims)])
    }

    /// Returns the largest value along an axis and its index; the gradient flows to that element
    /// only.
    #[track_caller]
    pub fn max_with_index(&self, along: i64, keepdims: bool) -> Result<(Tensor, Tensor)> {
        self.extreme("max", &reduce::ARGMAX, along, keepdims)
    }

    /// Returns the smallest value along an axis and its index.
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
