//! Optimizers for Rust programs; Python's `gt.optim` offers more.

use crate::error::Result;
use crate::tape::no_grad;
use crate::tensor::Tensor;
use crate::transaction::Transaction;

/// Stochastic gradient descent with momentum, as PyTorch defines it.
pub struct Sgd {
    parameters: Vec<Tensor>,
    velocities: Vec<Option<Tensor>>,
    pub learning_rate: f64,
    pub momentum: f64,
}

impl Sgd {
    /// Returns an optimizer of `parameters`.
    pub fn new(parameters: Vec<Tensor>, learning_rate: f64, momentum: f64) -> Sgd {
        let velocities = parameters.iter().map(|_| None).collect();
        Sgd { parameters, velocities, learning_rate, momentum }
    }

    /// Updates all parameters, or none if a gradient has failed.
    #[track_caller]
    pub fn step(&mut self) -> Result<()> {
        let velocities = self.velocities.iter().flatten();
        let step = Transaction::begin(self.parameters.iter().chain(velocities));
        let had: Vec<bool> = self.velocities.iter().map(Option::is_some).collect();
        if let Err(error) = self.update_all() {
            step.roll_back()?;
            return Err(error);
        }
        let new = self.velocities.iter().zip(had).filter(|(_, had)| !had);
        step.commit(new.filter_map(|(velocity, _)| Some((velocity.as_ref()?, None))))
    }

    #[track_caller]
    fn update_all(&mut self) -> Result<()> {
        let (learning_rate, momentum) = (self.learning_rate, self.momentum);
        no_grad(|| {
            for (parameter, velocity) in self.parameters.iter().zip(&mut self.velocities) {
                let Some(grad) = parameter.grad() else { continue };
                let step = match velocity.take() {
                    _ if momentum == 0.0 => grad,
                    None => grad,
                    Some(kept) => {
                        let step = grad.mul_add(&kept, momentum)?;
                        kept.assign(&step, "step")?;
                        *velocity = Some(kept);
                        step
                    }
                };
                parameter.assign(&parameter.mul_add(&step, -learning_rate)?, "step")?;
                if velocity.is_none() && momentum != 0.0 {
                    *velocity = Some(step.without_history());
                }
            }
            Ok(())
        })
    }

    /// Clears all gradients.
    pub fn zero_grad(&self) -> Result<()> {
        self.parameters.iter().try_for_each(|parameter| parameter.set_grad(None))
    }
}
