//! Advanced indexing: the elements that index tensors name, as rows of a flattened tensor.

use gt_ir::instruction::Attribute;
use gt_ir::ops::index as ops;
use gt_ir::shape::axis;
use gt_ir::{Error, Scalar, Shape};
use smallvec::{SmallVec, smallvec};

use super::Tensor;
use crate::error::Result;

/// How to read and write the elements that index tensors name: the indexed axes are permuted to the
/// front and flattened into one axis of rows, and one flat index picks rows.
pub(super) struct AdvancedIndex {
    /// The permutation that brings the indexed axes to the front.
    pub(super) order: SmallVec<[i64; 8]>,
    /// The lengths of the permuted axes.
    pub(super) ordered_dims: SmallVec<[i64; 8]>,
    /// `ordered_dims` with the indexed axes flattened into one.
    pub(super) flat_dims: SmallVec<[i64; 8]>,
    pub(super) flat_index: Tensor,
    /// The shape of the picked rows: the axes of the index, then the others.
    pub(super) picked_dims: SmallVec<[i64; 8]>,
    /// The permutation from the picked axes to those of the result.
    pub(super) back: SmallVec<[i64; 8]>,
}

impl AdvancedIndex {
    /// Prepares indexing a tensor of a shape by `tensors`, each with its axis.
    #[track_caller]
    pub(super) fn new(shape: &Shape, tensors: &[(usize, Tensor)]) -> Result<AdvancedIndex> {
        let indexed: Vec<usize> = tensors.iter().map(|(axis, _)| *axis).collect();
        let rest: Vec<usize> = (0..shape.rank()).filter(|axis| !indexed.contains(axis)).collect();
        let order: SmallVec<[i64; 8]> =
            indexed.iter().chain(&rest).map(|&axis| axis as i64).collect();
        let ordered_dims: SmallVec<[i64; 8]> =
            order.iter().map(|&axis| shape[axis as usize] as i64).collect();
        let rows: i64 = ordered_dims[..indexed.len()].iter().product();
        let rest_dims = &ordered_dims[indexed.len()..];
        let flat_dims = [rows].iter().chain(rest_dims).copied().collect();

        let (index, index_shape) = flat_index(shape, tensors)?;
        let count = index.shape().numel() as i64;
        let flat_index = index.reshape(&[count])?;
        let index_dims: Vec<i64> = index_shape.iter().map(|&dim| dim as i64).collect();
        let picked_dims: SmallVec<[i64; 8]> = index_dims.iter().chain(rest_dims).copied().collect();

        // As in NumPy: the axes of the index replace the indexed axes if these are adjacent, and
        // are first otherwise.
        let adjacent = indexed.windows(2).all(|pair| pair[1] == pair[0] + 1);
        let before = if adjacent { indexed[0] } else { 0 };
        let k = index_dims.len();
        let back = (k..k + before).chain(0..k).chain(k + before..picked_dims.len());
        let back = back.map(|axis| axis as i64).collect();
        Ok(AdvancedIndex { order, ordered_dims, flat_dims, flat_index, picked_dims, back })
    }

    /// Returns the permutation from the axes of the result to the picked ones: the inverse of
    /// `back`.
    pub(super) fn forth(&self) -> SmallVec<[i64; 8]> {
        invert(&self.back)
    }

    pub(super) fn result_shape(&self) -> Shape {
        let dims: Vec<usize> =
            self.back.iter().map(|&axis| self.picked_dims[axis as usize] as usize).collect();
        Shape::new(&dims).expect("a permutation of a shape")
    }

    /// Returns the shape of the values to write: one row for each index.
    pub(super) fn source_dims(&self) -> SmallVec<[i64; 8]> {
        let count = self.flat_index.shape()[0] as i64;
        [count].iter().chain(&self.flat_dims[1..]).copied().collect()
    }
}

/// Returns one index into the flattened axes, from an index into each of them, and the shape that
/// the indices broadcast to.
#[track_caller]
fn flat_index(shape: &Shape, tensors: &[(usize, Tensor)]) -> Result<(Tensor, Shape)> {
    let shapes = tensors.iter().map(|(_, index)| index.shape());
    let broadcast =
        shapes.clone().try_fold(Shape::SCALAR, |all, next| all.broadcast(&next, "indexing"));
    if broadcast.is_err() {
        return Err(Error::IndexShapes { shapes: shapes.collect() }.into());
    }
    let mut flat: Option<Tensor> = None;
    for (axis, index) in tensors {
        let length = shape[*axis] as i64;
        let wrapped = index.apply_unary(&ops::WRAP_INDEX, smallvec![Attribute::Int(length)])?;
        flat = Some(match flat {
            None => wrapped,
            Some(flat) => flat.mul(Scalar::Int(length))?.add(&wrapped)?,
        });
    }
    let flat = flat.expect("called with one tensor or more");
    let shape = flat.shape();
    Ok((flat, shape))
}

/// Returns the inverse of a permutation.
pub(super) fn invert(order: &[i64]) -> SmallVec<[i64; 8]> {
    let mut back: SmallVec<[i64; 8]> = smallvec![0; order.len()];
    for (to, &from) in order.iter().enumerate() {
        let from = axis(from, order.len(), "permute").expect("a permutation");
        back[from] = to as i64;
    }
    back
}
