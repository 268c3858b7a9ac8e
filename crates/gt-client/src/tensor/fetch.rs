//! Fetching a tensor's values, once they are computed.

use gt_ir::{Scalar, TensorData};

use super::Tensor;
use crate::driver::Interrupt;
use crate::error::{ClientError, Result};
use crate::session::Asked;

impl Tensor {
    /// Waits for the values; `interrupt` is polled during the wait, and can end it.
    ///
    /// # Errors
    /// The operation that made it failed; the connection was lost; interrupted.
    pub fn fetch_with(&self, interrupt: Interrupt) -> Result<TensorData> {
        match self.at_hand() {
            Some(data) => Ok(data),
            None => self.ask()?.wait(interrupt),
        }
    }

    /// Returns the values, if they are available without a request.
    pub fn at_hand(&self) -> Option<TensorData> {
        let value = self.value();
        match value.element.get() {
            Some(_) => self.known(),
            None if value.batched.is_none() => value.session.read(&value),
            None => None,
        }
    }

    /// Requests the values, to wait for them later.
    pub fn ask(&self) -> Result<Asked> {
        self.check_has_values(".numpy() or .tolist()")?;
        let value = self.value();
        value.session.ask(&value)
    }

    /// Waits for the values, without interruption.
    pub fn fetch(&self) -> Result<TensorData> {
        self.fetch_with(&mut || false)
    }

    /// Waits for the only element and returns it as a number.
    pub fn item(&self) -> Result<Scalar> {
        if self.shape().numel() != 1 {
            return Err(ClientError::usage(format!(
                "item: a tensor of shape {} has {} elements, not one\n  hint: index or reduce it first, or use tolist()",
                self.shape(),
                self.shape().numel()
            )));
        }
        Ok(self.fetch()?.element(0))
    }

    /// Waits for the elements and returns them as float64, in row-major order.
    ///
    /// # Errors
    /// As for [`Tensor::fetch`]; an integer is not exact in float64.
    pub fn to_vec(&self) -> Result<Vec<f64>> {
        let data = self.fetch()?;
        let is_rounded = |index: &usize| match data.element(*index) {
            Scalar::Int(value) => value as f64 as i128 != i128::from(value),
            _ => false,
        };
        if let Some(index) = (0..data.shape.numel()).find(is_rounded) {
            return Err(ClientError::usage(format!(
                "to_vec: {} has more digits than float64 holds\n  hint: read it by fetch()?.element({index}), which is an integer",
                data.element(index)
            )));
        }
        Ok((0..data.shape.numel()).map(|index| data.element(index).as_f64()).collect())
    }
}
