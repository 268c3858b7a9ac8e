//! Reading and writing parts of a tensor: `x[1:, None, mask]`, `x[index] = value`.
//!
//! - [`resolve`]: an index expression as a region, new axes, and axes indexed by tensors.
//! - [`places`]: reading and writing the places that index tensors name.
//! - [`mask`]: the places where a mask is true.
//! - [`along`]: gather, scatter and their like, along one axis.

mod along;
mod mask;
mod places;
mod resolve;

use gt_ir::instruction::Attribute;
use gt_ir::ops::{index as ops, slice};
use gt_ir::{DType, Error, Operand, Shape};
use smallvec::{SmallVec, smallvec};

use super::Tensor;
use super::elementwise::Value;
use crate::driver::Interrupt;
use crate::error::Result;
use places::{Places, invert};
use resolve::Resolved;

/// One entry of an index expression.
#[derive(Clone)]
pub enum Index {
    At(i64),
    /// As Python's slices: negative ends count from the back, ends are clipped to the axis.
    Slice {
        start: Option<i64>,
        stop: Option<i64>,
        step: i64,
    },
    NewAxis,
    Ellipsis,
    /// Integers: places along one axis. Bool: a mask over as many axes as it has itself.
    Tensor(Tensor),
}

impl Tensor {
    /// The part that an index expression names. A bool mask has to be fetched first, since the
    /// shape of the result depends on its values.
    #[track_caller]
    pub fn index(&self, entries: &[Index], interrupt: Interrupt) -> Result<Tensor> {
        let resolved = self.resolve(entries, interrupt)?;
        let part = self.take_region(&resolved)?;
        if resolved.tensors.is_empty() {
            return Ok(part);
        }
        let places = Places::new(&part.shape(), &resolved.tensors)?;
        let rows = part.permute(&places.order)?.reshape(&places.flat_dims)?;
        let picked = rows.index_select(0, &places.flat_index)?;
        picked.reshape(&places.picked_dims)?.permute(&places.back)
    }

    /// This tensor with the part that an index expression names replaced by `value`, which
    /// broadcasts to it.
    #[track_caller]
    pub fn with_index(
        &self,
        entries: &[Index],
        value: Value,
        interrupt: Interrupt,
    ) -> Result<Tensor> {
        // A mask over the whole tensor and one value is a `where`: the mask need not be fetched.
        if let [Index::Tensor(mask)] = entries
            && mask.dtype() == DType::Bool
            && mask.shape() == self.shape()
            && value.0.tensor().is_none_or(|value| value.shape().numel() == 1)
        {
            return self.fill_where(mask, value);
        }
        let resolved = self.resolve(entries, interrupt)?;
        let region: SmallVec<[usize; 8]> = resolved.dims.iter().map(|&dim| dim as usize).collect();
        let region = Shape::new(&region)?;
        let new_part = if resolved.tensors.is_empty() {
            self.value_for(value, &region)?
        } else {
            let part = self.take_region(&resolved)?;
            let places = Places::new(&part.shape(), &resolved.tensors)?;
            let rows = part.permute(&places.order)?.reshape(&places.flat_dims)?;
            let value = self.value_for(value, &places.result_shape())?;
            let source = value.permute(&places.forth())?.reshape(&places.source_dims())?;
            let operands = [
                Operand::Tensor(&rows),
                Operand::Tensor(&places.flat_index),
                Operand::Tensor(&source),
            ];
            let attributes = smallvec![Attribute::Int(0)];
            let rows = Tensor::apply(&self.session(), &ops::INDEX_COPY, &operands, attributes)?;
            rows.reshape(&places.ordered_dims)?.permute(&invert(&places.order))?
        };
        let attributes = smallvec![
            Attribute::ints(&resolved.starts),
            Attribute::ints(&resolved.sizes),
            Attribute::ints(&resolved.steps)
        ];
        let new_part = new_part.reshape(&resolved.sizes)?;
        let operands = [Operand::Tensor(self), Operand::Tensor(&new_part)];
        Tensor::apply(&self.session(), &slice::SLICE_ASSIGN, &operands, attributes)
    }

    /// This tensor with one value, a scalar or a tensor of one element, where a mask of its own
    /// shape is true.
    #[track_caller]
    fn fill_where(&self, mask: &Tensor, value: Value) -> Result<Tensor> {
        let value = match value.0 {
            Operand::Tensor(tensor) => Operand::Tensor(tensor.cast(self.dtype())?.reshape(&[])?),
            Operand::Scalar(scalar) => Operand::Scalar(scalar),
        };
        let value = match &value {
            Operand::Tensor(tensor) => Value(Operand::Tensor(tensor)),
            Operand::Scalar(scalar) => Value(Operand::Scalar(*scalar)),
        };
        Tensor::select(mask, value, self)?.cast(self.dtype())
    }

    /// `value` in this tensor's dtype, expanded to `shape`. Leading axes of length 1 that the
    /// shape does not have are dropped, as NumPy and PyTorch do in assignments.
    #[track_caller]
    fn value_for(&self, value: Value, shape: &Shape) -> Result<Tensor> {
        let mut tensor = match value.0 {
            Operand::Tensor(tensor) => tensor.cast(self.dtype())?,
            Operand::Scalar(scalar) => {
                Tensor::full(&self.session(), Shape::SCALAR, scalar, self.dtype())?
            }
        };
        while tensor.rank() > shape.rank() && tensor.shape()[0] == 1 {
            tensor = tensor.squeeze(&[0])?;
        }
        if !tensor.shape().expands_to(shape) {
            return Err(Error::ShapeMismatch {
                operation: "setitem",
                given: tensor.shape(),
                expected: format!("one that expands to the indexed part's {shape}"),
            }
            .into());
        }
        tensor.expand_to(shape)
    }

    /// The region of a resolved index expression, reshaped to its `dims`; always a tensor of its
    /// own.
    #[track_caller]
    fn take_region(&self, resolved: &Resolved) -> Result<Tensor> {
        let whole = resolved.sizes == self.dims() && resolved.steps.iter().all(|&step| step == 1);
        let part = if whole {
            self.clone()
        } else {
            self.region(&resolved.starts, &resolved.sizes, &resolved.steps)?
        };
        if part.dims() == resolved.dims {
            return if whole { part.copy() } else { Ok(part) };
        }
        part.reshape(&resolved.dims)
    }
}
