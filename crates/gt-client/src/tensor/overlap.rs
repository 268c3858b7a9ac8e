//! Changes in place of views that pass through an expanded tensor: several of its elements are one in
//! memory, so that the elements are written by their places there.

use bytes::Bytes;
use gt_ir::ops::{compare, index, shape, slice, ternary};
use gt_ir::{Attribute, Attributes, DType, Operand, Operation, Scalar, Shape, TensorData};
use smallvec::smallvec;

use super::Tensor;
use super::strides::Strided;
use crate::error::{ClientError, Result};

/// What may change a view whose elements overlap: operations that write one value, or the last of
/// several. PyTorch refuses all others.
const MAY_OVERLAP: [&str; 9] = [
    "setitem",
    "fill_",
    "zero_",
    "masked_fill_",
    "index_fill_",
    "index_put_",
    "fill_diagonal_",
    "tril_",
    "triu_",
];

/// The elements of a view whose places are listed for a change: beyond, it must be cloned.
const MOST: usize = 1 << 24;

/// An error if an operation may not change a view whose elements overlap.
pub(super) fn check(view: &Strided, operation: &str) -> Result<()> {
    let name = operation.strip_prefix("aten::").unwrap_or(operation);
    if MAY_OVERLAP.contains(&name) && view.shape.numel() <= MOST {
        return Ok(());
    }
    view.check_writable(operation)
}

/// The root after a view of it has become `changed`. Only elements that differ are written: one that
/// stays as it was does not undo the change of another in the same place.
pub(super) fn write(root: &Tensor, view: &Strided, changed: &Tensor) -> Result<Tensor> {
    let count = view.shape.numel();
    let size = root.shape().numel();
    let places = places(view);
    if places.iter().any(|&place| place < 0 || place >= size as i64) {
        return Err(ClientError::usage(format!(
            "a view of shape {} reaches beyond its base's {size} elements\n  hint: clone() it first",
            view.shape
        )));
    }
    let session = root.session();
    let shape = Shape::new(&[count])?;
    let bytes: Vec<u8> = places.iter().flat_map(|place| place.to_le_bytes()).collect();
    let places = TensorData { dtype: DType::I64, shape, bytes: Bytes::from(bytes) };
    let places = &Tensor::from_data(&session, places);
    let memory = &flat(root, size)?;
    let changed = &flat(changed, count)?;
    let along = || smallvec![Attribute::Int(0)];
    let before = &compute(&index::INDEX_SELECT, &[memory, places], along())?;
    let differs = compute(&compare::NE, &[changed, before], Attributes::new())?;
    // Not a number differs from itself, and stays as it was.
    let differs = if root.dtype().is_float() {
        let own = |x: &Tensor| compute(&compare::EQ, &[x, x], Attributes::new());
        let either = compute(&compare::LOGICAL_OR, &[&own(changed)?, &own(before)?], smallvec![])?;
        compute(&compare::LOGICAL_AND, &[&differs, &either], Attributes::new())?
    } else {
        differs
    };
    // What does not differ goes to a place behind the last one, which is cut off again.
    let behind = Operand::Scalar(Scalar::Int(size as i64));
    let operands = [Operand::Tensor(&differs), Operand::Tensor(places), behind];
    let places = Tensor::compute(&session, &ternary::WHERE, &operands, Attributes::new())?;
    let spare = Tensor::full(&session, Shape::new(&[1])?, 0i64, root.dtype())?;
    let room = compute(&shape::CAT, &[memory, &spare], along())?;
    let written = compute(&index::INDEX_COPY, &[&room, &places, changed], along())?;
    let whole =
        smallvec![Attribute::ints(&[0]), Attribute::ints(&[size as i64]), Attribute::ints(&[1])];
    let kept = compute(&slice::SLICE, &[&written], whole)?;
    compute(&shape::RESHAPE, &[&kept], smallvec![Attribute::dims(&root.shape())])
}

/// The places of a view's elements in memory, in row-major order.
fn places(view: &Strided) -> Vec<i64> {
    let mut places = vec![view.offset];
    for axis in 0..view.shape.rank() {
        let (length, stride) = (view.shape[axis] as i64, view.strides[axis]);
        places = places
            .iter()
            .flat_map(|place| (0..length).map(move |step| place + step * stride))
            .collect();
    }
    places
}

fn flat(tensor: &Tensor, count: usize) -> Result<Tensor> {
    compute(&shape::RESHAPE, &[tensor], smallvec![Attribute::ints(&[count as i64])])
}

fn compute(
    operation: &'static Operation,
    operands: &[&Tensor],
    attributes: Attributes,
) -> Result<Tensor> {
    let session = operands[0].session();
    let operands: Vec<_> = operands.iter().map(|&one| Operand::Tensor(one)).collect();
    Tensor::compute(&session, operation, &operands, attributes)
}
