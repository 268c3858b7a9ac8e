//! One step from a tensor to a view of it, and its inverse for in-place changes.

use gt_ir::operation::{ResultKind, ints};
use gt_ir::ops::{complex, index, shape, slice};
use gt_ir::{Attribute, Attributes, Operand, Operation, Shape};
use smallvec::{SmallVec, smallvec};

use super::Tensor;
use crate::error::Result;

/// A step from a tensor to a view.
#[derive(Clone)]
pub(super) enum ViewStep {
    Operation {
        operation: &'static Operation,
        attributes: Attributes,
    },
    /// One element of a tensor with one axis.
    Element {
        index: usize,
    },
    /// The elements at some indices along an axis, or in row-major order if `dim` is `None`, as
    /// `shape`.
    Indices {
        dim: Option<usize>,
        indices: Tensor,
        shape: Shape,
    },
}

impl ViewStep {
    /// Returns whether several elements of the view may be one element of the tensor.
    pub fn repeats(&self) -> bool {
        match self {
            ViewStep::Operation { operation, .. } => {
                operation.facts.result == ResultKind::RepeatedView
            }
            ViewStep::Indices { .. } => true,
            ViewStep::Element { .. } => false,
        }
    }

    /// Returns the view of `before`.
    pub fn apply(&self, before: &Tensor) -> Result<Tensor> {
        match self {
            ViewStep::Operation { operation, attributes } => {
                compute(operation, &[before], attributes.clone())
            }
            ViewStep::Element { index } => {
                let one = compute(&slice::SLICE, &[before], one_at(*index))?;
                reshape(&one, Shape::SCALAR)
            }
            ViewStep::Indices { dim, indices, shape } => {
                let rows = &rows_of(before, *dim)?;
                let along = Attribute::Int(dim.unwrap_or(0) as i64);
                let found = compute(&index::INDEX_SELECT, &[rows, indices], smallvec![along])?;
                reshape(&found, *shape)
            }
        }
    }

    /// Returns `before` with the elements of the view replaced by `changed`.
    pub fn undo(&self, before: &Tensor, changed: &Tensor) -> Result<Tensor> {
        let from = before.current_value().meta.shape;
        let (operation, attributes) = match self {
            ViewStep::Operation { operation, attributes } => (*operation, attributes),
            ViewStep::Element { index } => {
                let one = &reshape(changed, Shape::new(&[1])?)?;
                return compute(&slice::SLICE_ASSIGN, &[before, one], one_at(*index));
            }
            ViewStep::Indices { dim, indices, .. } => {
                let rows = &rows_of(before, *dim)?;
                let axis = dim.unwrap_or(0);
                let count = indices.shape().numel();
                let changed = &reshape(changed, rows.shape().with(axis, count))?;
                let along = smallvec![Attribute::Int(axis as i64)];
                let whole = compute(&index::INDEX_COPY, &[rows, indices, changed], along)?;
                return reshape(&whole, from);
            }
        };
        match operation.id {
            id if id == slice::SLICE.id => {
                compute(&slice::SLICE_ASSIGN, &[before, changed], attributes.clone())
            }
            id if id == shape::PERMUTE.id => {
                let rank = from.rank();
                let mut back: SmallVec<[i64; 8]> = smallvec![0; rank];
                for (to, &axis) in ints(attributes, 0).iter().enumerate() {
                    back[gt_ir::shape::axis(axis, rank, "permute")?] = to as i64;
                }
                compute(&shape::PERMUTE, &[changed], smallvec![Attribute::ints(&back)])
            }
            id if id == complex::VIEW_AS_REAL.id => {
                compute(&complex::VIEW_AS_COMPLEX, &[changed], Attributes::new())
            }
            id if id == complex::VIEW_AS_COMPLEX.id => {
                compute(&complex::VIEW_AS_REAL, &[changed], Attributes::new())
            }
            _ => reshape(changed, from),
        }
    }
}

/// Returns the attributes of a slice of one element along the only axis.
fn one_at(index: usize) -> Attributes {
    smallvec![Attribute::ints(&[index as i64]), Attribute::ints(&[1]), Attribute::ints(&[1])]
}

/// Returns the tensor that indices refer to: flattened, if no axis is named.
fn rows_of(before: &Tensor, dim: Option<usize>) -> Result<Tensor> {
    match dim {
        Some(_) => Ok(before.clone()),
        None => reshape(before, Shape::new(&[before.shape().numel()])?),
    }
}

pub(super) fn reshape(tensor: &Tensor, to: Shape) -> Result<Tensor> {
    compute(&shape::RESHAPE, &[tensor], smallvec![Attribute::dims(&to)])
}

pub(super) fn compute(
    operation: &'static Operation,
    operands: &[&Tensor],
    attributes: Attributes,
) -> Result<Tensor> {
    let session = operands[0].session();
    let operands: SmallVec<[_; 3]> = operands.iter().map(|&one| Operand::Tensor(one)).collect();
    Tensor::compute(&session, operation, &operands, attributes)
}
