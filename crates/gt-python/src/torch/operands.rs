//! The operands of a call: how they lie in memory, and the numbers of the host's among them.

use gt::ir::shape::MAX_RANK;
use gt::tensor::strides::Strided;
use gt::{Shape, Tensor};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

use super::api::TorchApi;
use super::dlpack::{self, CLUSTER};

/// The arguments on their way, and how the operands lie.
pub struct Operands<'a, 'py> {
    args: &'a Bound<'py, PyTuple>,
    pub layouts: SmallVec<[Strided; 3]>,
}

impl<'a, 'py> Operands<'a, 'py> {
    pub fn of(args: &'a Bound<'py, PyTuple>) -> Operands<'a, 'py> {
        Operands { args, layouts: SmallVec::new() }
    }

    /// The tensors on the cluster that a number of the host's meets.
    pub fn beside(&self, torch: &TorchApi) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut found = Vec::new();
        for given in self.args.iter_borrowed() {
            if torch.is_tensor(&given)? && dlpack::describe(&given)?.device.kind == CLUSTER {
                found.push(given.to_owned());
            }
        }
        Ok(found)
    }

    /// Returns whether all have `rank` axes, and differ in the last two only.
    pub fn are_batches(&self, rank: usize) -> bool {
        self.layouts.iter().all(|of| of.shape.rank() == rank)
            && self
                .layouts
                .windows(2)
                .all(|pair| pair[0].shape.dims()[..rank - 2] == pair[1].shape.dims()[..rank - 2])
    }

    /// Whether any of them does not lie in row-major order without gaps.
    pub fn any_in_other_order(&self) -> bool {
        self.layouts.iter().any(|layout| !layout.is_contiguous())
    }

    /// In which order the axes of an elementwise result lie in memory, if not in their own: as
    /// PyTorch's `TensorIterator` orders them, by the operands' strides.
    pub fn order(&self, result: &Tensor) -> Option<SmallVec<[i64; 8]>> {
        if !self.any_in_other_order() {
            return None;
        }
        let shape = result.shape();
        let fits = |layout: &&Strided| is_broadcast(layout, &shape);
        let operands: SmallVec<[[i64; MAX_RANK]; 4]> =
            self.layouts.iter().filter(fits).map(|layout| broadcast(layout, &shape)).collect();
        // The first operand that has different steps along two axes says which of them is inside.
        let is_inside = |left: usize, right: usize| {
            for strides in &operands {
                match (strides[left], strides[right]) {
                    (0, _) | (_, 0) => {}
                    (inner, outer) if inner != outer => return Some(inner < outer),
                    _ if shape[left] > shape[right] => return Some(false),
                    _ => {}
                }
            }
            None
        };
        // From the innermost axis to the outermost one.
        let mut inner: SmallVec<[usize; 8]> = (0..shape.rank()).rev().collect();
        for end in 1..inner.len() {
            let mut moved = end;
            for at in (0..end).rev() {
                match is_inside(inner[at], inner[moved]) {
                    Some(true) => break,
                    Some(false) => {
                        inner.swap(at, moved);
                        moved = at;
                    }
                    None => {}
                }
            }
        }
        let order: SmallVec<[i64; 8]> = inner.iter().rev().map(|&axis| axis as i64).collect();
        (!order.is_sorted()).then_some(order)
    }
}

/// Whether a tensor that lies so is broadcast to a shape.
fn is_broadcast(layout: &Strided, shape: &Shape) -> bool {
    let own = layout.shape.dims();
    own.len() <= shape.rank()
        && own.iter().rev().zip(shape.dims().iter().rev()).all(|(own, to)| *own == 1 || own == to)
}

/// The steps along the axes of the shape that it is broadcast to.
fn broadcast(layout: &Strided, shape: &Shape) -> [i64; MAX_RANK] {
    let mut strides = [0; MAX_RANK];
    let first = shape.rank() - layout.shape.rank();
    for (axis, &length) in layout.shape.iter().enumerate() {
        if length == shape[first + axis] {
            strides[first + axis] = layout.strides[axis];
        }
    }
    strides
}
