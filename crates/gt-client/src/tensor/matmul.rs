//! Matrix products in all of PyTorch's forms.

use gt_ir::ops::matmul::MATMUL;
use gt_ir::{Error, Operand};
use smallvec::smallvec;

use super::Tensor;
use crate::error::Result;

impl Tensor {
    /// Returns the matrix product over the last two axes. A left operand with one axis is a row, a
    /// right one a column; the added axis is removed from the result. Axes before the last two
    /// broadcast.
    #[track_caller]
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        if self.rank() >= 2 && other.rank() >= 2 {
            return self.matmul_2d(other);
        }
        for given in [self.shape(), other.shape()] {
            if given.rank() == 0 {
                let expected = "one axis or more; use * for a number".to_string();
                return Err(Error::ShapeMismatch { operation: "matmul", given, expected }.into());
            }
        }
        let (row, column) = (self.rank() == 1, other.rank() == 1);
        let (left, right) = (self.shape(), other.shape());
        let left_inner = left[left.rank() - 1];
        let right_inner = right[right.rank().saturating_sub(2)];
        if left_inner != right_inner {
            return Err(Error::Matmul { left, right, left_inner, right_inner }.into());
        }
        let left = if row { self.unsqueeze(0)? } else { self.clone() };
        let right = if column { other.unsqueeze(1)? } else { other.clone() };
        let product = left.matmul_2d(&right)?;
        match (row, column) {
            (true, true) => product.reshape(&[]),
            (true, false) => product.squeeze(&[-2]),
            (false, true) => product.squeeze(&[-1]),
            (false, false) => Ok(product),
        }
    }

    #[track_caller]
    fn matmul_2d(&self, other: &Tensor) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), Operand::Tensor(other)];
        Tensor::apply(&self.session(), &MATMUL, &operands, smallvec![])
    }
}
