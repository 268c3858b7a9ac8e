//! The operands of a call: how they lie in memory, and the numbers of the host's among them.

use gt::Tensor;
use gt::tensor::strides::Strided;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

use super::dlpack::{self, CLUSTER, CPU};
use super::side::Torch;

/// The arguments on their way, and how the operands lie.
#[derive(Default)]
pub struct Operands {
    pub layouts: SmallVec<[Strided; 3]>,
    /// The tensors of a call in which there is one of the host's without axes.
    pub beside: Vec<Py<PyAny>>,
}

impl Operands {
    /// Keeps the tensors on the cluster that a number of the host's meets.
    pub fn find_beside(&mut self, torch: &Torch, args: &Bound<'_, PyTuple>) -> PyResult<()> {
        let mut has_number = false;
        for given in args.iter_borrowed() {
            if torch.is_tensor(&given)? {
                let view = dlpack::view(&given)?;
                has_number |= view.device.kind == CPU && view.rank == 0;
                if view.device.kind == CLUSTER {
                    self.beside.push(given.to_owned().unbind());
                }
            }
        }
        if !has_number {
            self.beside.clear();
        }
        Ok(())
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
