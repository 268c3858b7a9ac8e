//! In-place changes of views with overlapping elements, as of an expanded tensor: several elements
//! are one in memory, so the elements are written by their index in the root.

use gt_ir::ops::{compare, index, shape, slice, ternary};
use gt_ir::{Attribute, Attributes, DType, Operand, Scalar, Shape};
use smallvec::smallvec;

use super::Tensor;
use super::strides::Strided;
use super::view_step::{compute, reshape};
use crate::error::Result;

/// The operations that may change a view whose elements overlap: they write one value, or the last
/// of several. PyTorch refuses all others.
const MAY_OVERLAP: [&str; 9] = [
    "indexing",
    "fill_",
    "zero_",
    "masked_fill_",
    "index_fill_",
    "index_put_",
    "fill_diagonal_",
    "tril_",
    "triu_",
];

/// The most elements of a view that is written by index; a larger one must be cloned.
const MOST: usize = 1 << 24;

/// Returns an error if the operation may not change a view whose elements overlap.
pub(super) fn check(view: &Strided, operation: &str) -> Result<()> {
    let name = operation.strip_prefix("aten::").unwrap_or(operation);
    if MAY_OVERLAP.contains(&name) && view.shape.numel() <= MOST {
        return Ok(());
    }
    view.check_writable(operation)
}

/// Returns the index of each element of a tensor, in the tensor's shape.
pub(super) fn indices(of: &Tensor) -> Result<Tensor> {
    let (shape, start, step) = (of.shape(), Scalar::Int(0), Scalar::Int(1));
    let end = Scalar::Int(shape.numel() as i64);
    reshape(&Tensor::arange(&of.session(), start, end, step, DType::I64)?, shape)
}

/// Returns the root after a view of it, whose elements have these indices in it, was changed to
/// `changed`. If elements overlap, only those that differ are written: an unchanged element must
/// not undo the change of another at the same index.
pub(super) fn write(
    root: &Tensor,
    indices: &Tensor,
    changed: &Tensor,
    overlaps: bool,
) -> Result<Tensor> {
    let (shape, count) = (root.shape(), changed.shape().numel());
    let size = shape.numel();
    let session = root.session();
    let mut indices = flat(indices, count)?;
    let memory = &flat(root, size)?;
    let changed = &flat(changed, count)?;
    let along = || smallvec![Attribute::Int(0)];
    if !overlaps {
        let written = compute(&index::INDEX_COPY, &[memory, &indices, changed], along())?;
        return reshape(&written, shape);
    }
    let before = &compute(&index::INDEX_SELECT, &[memory, &indices], along())?;
    let mut differs = compute(&compare::NE, &[changed, before], Attributes::new())?;
    // NaN differs from itself, but is unchanged.
    if !root.dtype().is_exact() {
        let own = |x: &Tensor| compute(&compare::EQ, &[x, x], Attributes::new());
        let either =
            compute(&compare::LOGICAL_OR, &[&own(changed)?, &own(before)?], Attributes::new())?;
        differs = compute(&compare::LOGICAL_AND, &[&differs, &either], Attributes::new())?;
    }
    // Unchanged elements are written behind the last element, which is sliced off.
    let behind = Operand::Scalar(Scalar::Int(size as i64));
    let operands = [Operand::Tensor(&differs), Operand::Tensor(&indices), behind];
    indices = Tensor::compute(&session, &ternary::WHERE, &operands, Attributes::new())?;
    let spare = Tensor::full(&session, Shape::new(&[1])?, 0i64, root.dtype())?;
    let room = compute(&shape::CAT, &[memory, &spare], along())?;
    let written = compute(&index::INDEX_COPY, &[&room, &indices, changed], along())?;
    let whole =
        smallvec![Attribute::ints(&[0]), Attribute::ints(&[size as i64]), Attribute::ints(&[1])];
    reshape(&compute(&slice::SLICE, &[&written], whole)?, shape)
}

fn flat(tensor: &Tensor, count: usize) -> Result<Tensor> {
    compute(&shape::RESHAPE, &[tensor], smallvec![Attribute::ints(&[count as i64])])
}
