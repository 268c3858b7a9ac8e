//! Index expressions, to read and write parts of a tensor: `x[1:, None, mask]`, `x[index] = value`.
//!
//! - [`resolve`]: converts an index expression to a region, new axes, and axes indexed by tensors.
//! - [`advanced`]: indexing by tensors.
//! - [`mask`]: indexing by masks.
//! - [`along`]: `scatter_add` and `index_add`, along one axis.

mod advanced;
mod along;
mod mask;
mod resolve;

use gt_ir::instruction::Attribute;
use gt_ir::ops::{index as ops, slice};
use gt_ir::{DType, Error, Operand, Shape, number};
use smallvec::{SmallVec, smallvec};

use super::Tensor;
use super::elementwise::Value;
use crate::driver::Interrupt;
use crate::error::Result;
use advanced::{AdvancedIndex, invert};
use mask::leading_mask;
use resolve::Resolved;

/// One entry of an index expression.
#[derive(Clone)]
pub enum Index {
    At(i64),
    /// As in Python: negative bounds count from the end, and bounds are clipped to the axis.
    Slice {
        start: Option<i64>,
        stop: Option<i64>,
        step: i64,
    },
    NewAxis,
    Ellipsis,
    /// A new axis of length 1, or of length 0 for false.
    Bool(bool),
    /// Integers: indices along one axis. Bool: a mask over as many axes as it has.
    Tensor(Tensor),
}

/// An index tensor without axes, and its axis.
struct ScalarIndex {
    axis: i64,
    /// The index, wrapped to count from the start, with one axis.
    index: Tensor,
    /// The index expression with the number 0 in its place.
    others: Vec<Index>,
}

impl Tensor {
    /// Returns the part that an index expression names. With a bool mask, waits for the number of
    /// true values, since the result's shape depends on it.
    #[track_caller]
    pub fn index(&self, entries: &[Index], interrupt: Interrupt) -> Result<Tensor> {
        if let Some(mask) = leading_mask(entries) {
            return self.masked_rows(mask, interrupt);
        }
        if let Some(scalar) = self.scalar_index(entries)? {
            let part = self.index_select(scalar.axis, &scalar.index)?;
            return part.index(&scalar.others, interrupt);
        }
        let resolved = self.resolve(entries, interrupt)?;
        let part = self.take_region(&resolved)?;
        if resolved.tensors.is_empty() {
            return Ok(part);
        }
        let advanced = AdvancedIndex::new(&part.shape(), &resolved.tensors)?;
        let rows = part.permute(&advanced.order)?.reshape(&advanced.flat_dims)?;
        let picked = rows.index_select(0, &advanced.flat_index)?;
        picked.reshape(&advanced.picked_dims)?.permute(&advanced.back)
    }

    /// Returns this tensor with the part that an index expression names replaced by `value`, which
    /// broadcasts to it.
    #[track_caller]
    pub fn with_index(
        &self,
        entries: &[Index],
        value: Value,
        interrupt: Interrupt,
    ) -> Result<Tensor> {
        let value = match value.0 {
            Operand::Scalar(scalar) => number::element("indexing", scalar, self.dtype())?.into(),
            Operand::Tensor(_) => value,
        };
        if let Some(mask) = leading_mask(entries) {
            return self.with_masked_rows(mask, value, interrupt);
        }
        if let Some(scalar) = self.scalar_index(entries)? {
            let part = self.index_select(scalar.axis, &scalar.index)?;
            let part = part.with_index(&scalar.others, value, interrupt)?;
            return self.index_copy(scalar.axis, &scalar.index, &part);
        }
        let resolved = self.resolve(entries, interrupt)?;
        let region: SmallVec<[usize; 8]> = resolved.dims.iter().map(|&dim| dim as usize).collect();
        let region = Shape::new(&region)?;
        let new_part = if resolved.tensors.is_empty() {
            self.value_for(value, &region)?
        } else {
            let part = self.take_region(&resolved)?;
            let advanced = AdvancedIndex::new(&part.shape(), &resolved.tensors)?;
            let rows = part.permute(&advanced.order)?.reshape(&advanced.flat_dims)?;
            let value = self.value_for(value, &advanced.result_shape())?;
            let source = value.permute(&advanced.forth())?.reshape(&advanced.source_dims())?;
            let operands = [
                Operand::Tensor(&rows),
                Operand::Tensor(&advanced.flat_index),
                Operand::Tensor(&source),
            ];
            let attributes = smallvec![Attribute::Int(0)];
            let rows = Tensor::apply(&self.session(), &ops::INDEX_COPY, &operands, attributes)?;
            rows.reshape(&advanced.ordered_dims)?.permute(&invert(&advanced.order))?
        };
        let attributes = smallvec![
            Attribute::ints(&resolved.starts),
            Attribute::ints(&resolved.sizes),
            Attribute::ints(&resolved.steps)
        ];
        // A part that expands to the same number of elements differs only in leading axes of length
        // 1.
        let sizes: SmallVec<[usize; 8]> =
            resolved.sizes.iter().map(|&size| size as usize).collect();
        let new_part = if new_part.shape().expands_to(&Shape::new(&sizes)?) {
            new_part
        } else {
            new_part.reshape(&resolved.sizes)?
        };
        let operands = [Operand::Tensor(self), Operand::Tensor(&new_part)];
        Tensor::apply(&self.session(), &slice::SLICE_ASSIGN, &operands, attributes)
    }

    /// Replaces the part that an index expression names by `value`, in place.
    ///
    /// # Errors
    /// Several elements of the part are one in memory, and the value is a tensor.
    #[track_caller]
    pub fn set_index(&self, entries: &[Index], value: Value, interrupt: Interrupt) -> Result<()> {
        let is_region = !entries.iter().any(|entry| matches!(entry, Index::Tensor(_)));
        if is_region && value.0.tensor().is_some() && self.strided().overlaps() {
            self.index(entries, interrupt)?.strided().check_writable("indexing")?;
        }
        let whole = self.with_index(entries, value, interrupt)?;
        self.assign(&whole, "indexing")
    }

    /// Returns the first index tensor without axes in an index expression: like a number, it
    /// removes its axis.
    #[track_caller]
    fn scalar_index(&self, entries: &[Index]) -> Result<Option<ScalarIndex>> {
        let is_scalar = |entry: &Index| matches!(entry, Index::Tensor(index) if index.rank() == 0 && index.dtype() != DType::Bool);
        let Some(at) = entries.iter().position(is_scalar) else { return Ok(None) };
        let (rank, used) = (self.rank(), resolve::axes_used(entries));
        if used > rank {
            return Err(Error::TooManyIndices { given: used, shape: self.shape() }.into());
        }
        let before = resolve::axes_used(&entries[..at]);
        let is_behind = entries[..at].iter().any(|entry| matches!(entry, Index::Ellipsis));
        let axis = if is_behind { rank - used + before } else { before };
        let Index::Tensor(index) = &entries[at] else { unreachable!("it is an index tensor") };
        let length = smallvec![Attribute::Int(self.shape()[axis] as i64)];
        let index = index.apply_unary(&ops::WRAP_INDEX, length)?.reshape(&[1])?;
        let mut others = entries.to_vec();
        others[at] = Index::At(0);
        Ok(Some(ScalarIndex { axis: axis as i64, index, others }))
    }

    /// Returns `value` in this tensor's dtype, expanded to `shape`. Leading axes of length 1 that
    /// the shape does not have are dropped, as NumPy and PyTorch do in assignments.
    #[track_caller]
    fn value_for(&self, value: Value, shape: &Shape) -> Result<Tensor> {
        let mut tensor = match value.0 {
            Operand::Tensor(tensor) => tensor.cast(self.dtype())?,
            Operand::Scalar(scalar) => {
                Tensor::full(&self.session(), Shape::SCALAR, scalar, self.dtype())?
            }
        };
        tensor = tensor.without_leading_ones(shape.rank())?;
        if !tensor.shape().expands_to(shape) {
            return Err(Error::ShapeMismatch {
                operation: "indexing",
                given: tensor.shape(),
                expected: format!("one that expands to the indexed part's {shape}"),
            }
            .into());
        }
        tensor.expand_to(shape)
    }

    /// Drops leading axes of length 1 until at most `rank` axes remain, if there are enough.
    #[track_caller]
    fn without_leading_ones(&self, rank: usize) -> Result<Tensor> {
        let dims = self.dims();
        let spare = dims.len().saturating_sub(rank);
        let gone = dims[..spare].iter().take_while(|&&dim| dim == 1).count();
        if gone == 0 { Ok(self.clone()) } else { self.reshape(&dims[gone..]) }
    }

    /// Returns the region of a resolved index expression, reshaped to its `dims`; never this tensor
    /// itself.
    #[track_caller]
    fn take_region(&self, resolved: &Resolved) -> Result<Tensor> {
        let whole = resolved.sizes == self.dims() && resolved.steps.iter().all(|&step| step == 1);
        let part = if whole {
            self.clone()
        } else {
            self.region(&resolved.starts, &resolved.sizes, &resolved.steps)?
        };
        if part.dims() == resolved.dims {
            return if whole { part.alias() } else { Ok(part) };
        }
        part.reshape(&resolved.dims)
    }
}
