//! A fully connected layer.

use gt_ir::{DType, Shape};

use super::Module;
use crate::error::Result;
use crate::session::Session;
use crate::tensor::Tensor;

/// `x @ weight.T + bias`, with the weight laid out as PyTorch's: out x in.
pub struct Linear {
    pub weight: Tensor,
    pub bias: Tensor,
}

impl Linear {
    /// Creates a layer with weights and bias uniform in ±1/sqrt(inputs), as in PyTorch.
    #[track_caller]
    pub fn new(session: &Session, inputs: usize, outputs: usize) -> Result<Linear> {
        let bound = 1.0 / (inputs.max(1) as f64).sqrt();
        let uniform = |dims: &[usize]| -> Result<Tensor> {
            let unit = Tensor::rand(session, Shape::new(dims)?, DType::F32)?;
            let tensor = unit.mul(2.0 * bound)?.sub(bound)?;
            tensor.set_requires_grad(true)?;
            Ok(tensor)
        };
        Ok(Linear { weight: uniform(&[outputs, inputs])?, bias: uniform(&[outputs])? })
    }
}

impl Module for Linear {
    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.matmul(&self.weight.t()?)?.add(&self.bias)
    }

    fn parameters(&self) -> Vec<Tensor> {
        vec![self.weight.clone(), self.bias.clone()]
    }
}
