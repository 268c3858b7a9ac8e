//! Indexing by masks. The result's shape depends on the number of true values, which the workers
//! count; the client waits for that number only.

use gt_ir::instruction::Attribute;
use gt_ir::ops::{data_dependent as ops, reduce};
use gt_ir::{DType, Error, Operand, Shape};
use smallvec::{SmallVec, smallvec};

use super::{Index, Tensor, Value};
use crate::context::invalidate_recording;
use crate::driver::Interrupt;
use crate::error::Result;

impl Tensor {
    /// Returns the indices of the nonzero elements, one row each. Waits for their number.
    #[track_caller]
    pub fn nonzero(&self, interrupt: Interrupt) -> Result<Tensor> {
        let count = self.count_true(interrupt)?;
        self.apply_unary(&ops::NONZERO, smallvec![Attribute::Int(count)])
    }

    /// Returns the number of nonzero elements. Waits for it at the first call for a value.
    #[track_caller]
    fn count_true(&self, interrupt: Interrupt) -> Result<i64> {
        self.check_countable()?;
        // Even if the count is known: it differs for another mask.
        invalidate_recording();
        if self.shape().numel() == 0 {
            return Ok(0);
        }
        let value = self.value();
        if let Some(count) = value.true_count() {
            return Ok(count);
        }
        let all = smallvec![Attribute::ints::<i64>(&[]), Attribute::Bool(false)];
        let count = self.cast(DType::Bool)?.apply_unary(&reduce::SUM, all)?;
        let count = count.fetch_with(interrupt)?.element(0).as_f64() as i64;
        value.set_true_count(count);
        Ok(count)
    }

    /// Returns the rows where a mask over the leading axes is true, in order.
    #[track_caller]
    pub(super) fn masked_rows(&self, mask: &Tensor, interrupt: Interrupt) -> Result<Tensor> {
        check_mask(&self.shape(), 0, mask)?;
        let count = smallvec![Attribute::Int(mask.count_true(interrupt)?)];
        let operands = [Operand::Tensor(self), Operand::Tensor(mask)];
        Tensor::apply(&self.session(), &ops::MASKED_ROWS, &operands, count)
    }

    /// Returns this tensor with other values where a mask over the leading axes is true. `value` is
    /// one row for all of them, or has as many rows as true values.
    #[track_caller]
    pub(super) fn with_masked_rows(
        &self,
        mask: &Tensor,
        value: Value,
        interrupt: Interrupt,
    ) -> Result<Tensor> {
        let shape = self.shape();
        check_mask(&shape, 0, mask)?;
        let row = Shape::new(&shape[mask.rank()..])?;
        let value = match value.0 {
            Operand::Scalar(scalar) => {
                return Tensor::select(&self.beside(mask)?, scalar, self)?.cast(self.dtype());
            }
            Operand::Tensor(value) => value.cast(self.dtype())?.without_leading_ones(row.rank())?,
        };
        if value.shape().expands_to(&row) {
            return Tensor::select(&self.beside(mask)?, &value, self)?.cast(self.dtype());
        }
        let count = mask.count_true(interrupt)? as usize;
        let dims: SmallVec<[usize; 8]> = [count].into_iter().chain(row.iter().copied()).collect();
        let rows = self.value_for(Value::from(&value), &Shape::new(&dims)?)?;
        let operands = [Operand::Tensor(self), Operand::Tensor(mask), Operand::Tensor(&rows)];
        Tensor::apply(&self.session(), &ops::MASKED_ROWS_SCATTER, &operands, smallvec![])
    }

    /// Returns a mask over leading axes, with length 1 along the others, so that it broadcasts to
    /// this tensor.
    #[track_caller]
    fn beside(&self, mask: &Tensor) -> Result<Tensor> {
        let mut dims: SmallVec<[i64; 8]> = mask.dims();
        dims.resize(self.rank(), 1);
        mask.reshape(&dims)
    }
}

/// Returns the mask of an index expression that consists of a mask, and full slices behind it.
pub(super) fn leading_mask(entries: &[Index]) -> Option<&Tensor> {
    let [Index::Tensor(mask), rest @ ..] = entries else { return None };
    let is_whole = |entry: &Index| {
        matches!(entry, Index::Ellipsis | Index::Slice { start: None, stop: None, step: 1 })
    };
    let alone = rest.is_empty() || rest.len() == 1 && is_whole(&rest[0]);
    (mask.dtype() == DType::Bool && mask.rank() > 0 && alone).then_some(mask)
}

/// Returns an error if a mask's shape differs from the axes from `first` on that it is over.
fn check_mask(shape: &Shape, first: usize, mask: &Tensor) -> Result<()> {
    if shape[first.min(shape.rank())..].starts_with(mask.shape().dims()) {
        return Ok(());
    }
    if first + mask.rank() > shape.rank() {
        return Err(Error::TooManyIndices { given: first + mask.rank(), shape: *shape }.into());
    }
    Err(Error::MaskShape { mask: mask.shape(), shape: *shape, axis: first }.into())
}

/// Returns the indices where a mask over the axes of `shape` from `first` on is true: one index
/// tensor for each of the mask's axes.
#[track_caller]
pub(super) fn mask_indices(
    shape: &Shape,
    first: usize,
    mask: &Tensor,
    interrupt: Interrupt,
) -> Result<Vec<Tensor>> {
    check_mask(shape, first, mask)?;
    let indices = mask.nonzero(interrupt)?;
    let count = indices.shape()[0] as i64;
    (0..mask.rank() as i64)
        .map(|axis| indices.region(&[0, axis], &[count, 1], &[1, 1])?.reshape(&[count]))
        .collect()
}

/// Returns the index that a mask without axes stands for: 0 along a new axis of length 1 if it is
/// true, otherwise an empty one.
#[track_caller]
pub(super) fn scalar_mask_index(mask: &Tensor, interrupt: Interrupt) -> Result<Tensor> {
    let count = mask.count_true(interrupt)? as usize;
    Tensor::full(&mask.session(), Shape::new(&[count])?, 0i64, DType::I64)
}
