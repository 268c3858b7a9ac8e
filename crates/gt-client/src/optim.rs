//! Optimizers for Rust programs; Python's `gt.optim` offers more.

use crate::error::Result;
use crate::tape::no_grad;
use crate::tensor::Tensor;

/// Stochastic gradient descent with momentum, as PyTorch defines it.
pub struct Sgd {
    parameters: Vec<Tensor>,
    velocities: Vec<Option<Tensor>>,
    pub learning_rate: f64,
    pub momentum: f64,
}

impl Sgd {
    pub fn new(parameters: Vec<Tensor>, learning_rate: f64, momentum: f64) -> Sgd {
        let velocities = parameters.iter().map(|_| None).collect();
        Sgd { parameters, velocities, learning_rate, momentum }
    }

    /// Moves each parameter against its gradient.
    #[track_caller]
    pub fn step(&mut self) -> Result<()> {
        let (learning_rate, momentum) = (self.learning_rate, self.momentum);
        no_grad(|| {
            for (parameter, velocity) in self.parameters.iter().zip(&mut self.velocities) {
                let Some(grad) = parameter.grad() else { continue };
                let step = match velocity.take() {
                    _ if momentum == 0.0 => grad,
                    None => grad,
                    Some(velocity) => grad.mul_add(&velocity, momentum)?,
                };
                parameter.assign(&parameter.mul_add(&step, -learning_rate)?, "step")?;
                *velocity = Some(step);
            }
            Ok(())
        })
    }

    /// Forgets all gradients.
    pub fn zero_grad(&self) -> Result<()> {
        self.parameters.iter().try_for_each(|parameter| parameter.set_grad(None))
    }
}
