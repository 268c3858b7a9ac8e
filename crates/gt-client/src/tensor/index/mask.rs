//! The places where a mask is true. Their number depends on the mask's values, so it is fetched.

use gt_ir::{Error, Shape, TensorData};

use super::Tensor;
use crate::driver::Interrupt;
use crate::error::Result;

impl Tensor {
    /// The places where the tensor is not zero, one row each. Fetches the tensor.
    #[track_caller]
    pub fn nonzero(&self, interrupt: Interrupt) -> Result<Tensor> {
        let data = self.fetch_with(interrupt)?;
        let places = true_places(&data);
        let flat: Vec<i64> = places.concat();
        let dims = [places.len(), self.rank()];
        Tensor::from_slice(&self.session(), &flat, &dims)
    }
}

/// The places where a mask over the axes of `shape` from `first` on is true: one index tensor for
/// each of the mask's axes.
pub(super) fn mask_places(
    shape: &Shape,
    first: usize,
    mask: &Tensor,
    interrupt: Interrupt,
) -> Result<Vec<Tensor>> {
    let covered = &shape[first..(first + mask.rank()).min(shape.rank())];
    if covered != mask.shape().dims() || mask.rank() == 0 {
        return Err(Error::ShapeMismatch {
            operation: "index",
            given: mask.shape(),
            expected: format!("a mask as long as the axes it covers, {covered:?} of {shape}"),
        }
        .into());
    }
    let places = true_places(&mask.fetch_with(interrupt)?);
    (0..mask.rank())
        .map(|axis| {
            let along: Vec<i64> = places.iter().map(|place| place[axis]).collect();
            Tensor::from_slice(&mask.session(), &along, &[along.len()])
        })
        .collect()
}

/// The index of each element that is not zero.
fn true_places(data: &TensorData) -> Vec<Vec<i64>> {
    let strides = data.shape.strides();
    (0..data.shape.numel())
        .filter(|&flat| data.element(flat).as_f64() != 0.0)
        .map(|flat| {
            let place = |axis: usize| (flat / strides[axis] % data.shape[axis]) as i64;
            (0..data.shape.rank()).map(place).collect()
        })
        .collect()
}
