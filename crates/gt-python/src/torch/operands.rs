//! The memory layouts of a call's operands.

use gt::ir::shape::MAX_RANK;
use gt::tensor::strides::Strided;
use gt::{Shape, Tensor};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

use super::api::TorchApi;
use super::dlpack::{self, CLUSTER};

/// The arguments of a call, and the layouts of the operands that were read.
pub struct StridedOperands<'a, 'py> {
    args: &'a Bound<'py, PyTuple>,
    pub layouts: SmallVec<[Strided; 3]>,
}

impl<'a, 'py> StridedOperands<'a, 'py> {
    /// Returns the layouts of a call, of which none was read yet.
    pub fn of(args: &'a Bound<'py, PyTuple>) -> StridedOperands<'a, 'py> {
        StridedOperands { args, layouts: SmallVec::new() }
    }

    /// Returns the tensors on the cluster among the arguments, which a host number is combined
    /// with.
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

    /// Returns whether any operand is not contiguous.
    pub fn any_in_other_order(&self) -> bool {
        self.layouts.iter().any(|layout| !layout.is_contiguous())
    }

    /// Returns the memory order of an elementwise result's axes, outermost first; `None` if it is
    /// row-major. Follows PyTorch's `TensorIterator`, which orders axes by the operands' strides.
    pub fn order(&self, result: &Tensor) -> Option<SmallVec<[i64; 8]>> {
        if !self.any_in_other_order() {
            return None;
        }
        let shape = result.shape();
        let fits = |layout: &&Strided| is_broadcast(layout, &shape);
        let operands: SmallVec<[[i64; MAX_RANK]; 4]> =
            self.layouts.iter().filter(fits).map(|layout| broadcast(layout, &shape)).collect();
        // The first operand with different strides along two axes decides which of them is inside.
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
        // The axes, from the innermost to the outermost: an insertion sort, as in TensorIterator.
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

/// Returns whether a layout can be broadcast to a shape.
fn is_broadcast(layout: &Strided, shape: &Shape) -> bool {
    let own = layout.shape.dims();
    own.len() <= shape.rank()
        && own.iter().rev().zip(shape.dims().iter().rev()).all(|(own, to)| *own == 1 || own == to)
}

/// Returns the strides of a layout broadcast to a shape.
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
