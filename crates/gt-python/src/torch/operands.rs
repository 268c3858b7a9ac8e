//! The operands of a call: how they lie in memory, and the numbers of the host's among them.

use gt::Tensor;
use gt::tensor::strides::Strided;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

use super::dlpack::{self, CLUSTER};
use super::side::Torch;

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
    pub fn beside(&self, torch: &Torch) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut found = Vec::new();
        for given in self.args.iter_borrowed() {
            if torch.is_tensor(&given)? && dlpack::view(&given)?.device.kind == CLUSTER {
                found.push(given.to_owned());
            }
        }
        Ok(found)
    }

    /// Whether all have so many axes, and are alike but for the last two.
    pub fn are_batches(&self, rank: usize) -> bool {
        self.layouts.iter().all(|of| of.shape.rank() == rank)
            && self
                .layouts
                .windows(2)
                .all(|pair| pair[0].shape.dims()[..rank - 2] == pair[1].shape.dims()[..rank - 2])
    }

    /// In which order the axes of a pointwise result lie in memory, if not in their own: in that of
    /// the first operand with the result's shape.
    pub fn order(&self, result: &Tensor) -> Option<SmallVec<[i64; 8]>> {
        let shape = result.shape();
        let first = self.layouts.iter().find(|layout| layout.shape == shape)?;
        if first.is_contiguous() {
            return None;
        }
        let mut order: SmallVec<[i64; 8]> = (0..shape.rank() as i64).collect();
        // Axes of length 1 and expanded ones say nothing; they stay where they are.
        for end in (1..order.len()).rev() {
            for at in 0..end {
                let (left, right) = (order[at] as usize, order[at + 1] as usize);
                let says = |axis: usize| shape[axis] != 1 && first.strides[axis] != 0;
                if says(left) && says(right) && first.strides[left] < first.strides[right] {
                    order.swap(at, at + 1);
                }
            }
        }
        (!order.is_sorted()).then_some(order)
    }
}
