//! A tensor's layouts and workers, and copies placed by a signal.

use gt_ir::explain::PlacedTensor;

use super::Tensor;
use crate::config::registry;
use crate::driver::Interrupt;
use crate::error::Result;
use crate::signal;

impl Tensor {
    /// Returns its layouts, each with its workers.
    ///
    /// # Errors
    /// The operation that made it failed; the connection was lost; interrupted.
    pub fn placement(&self, interrupt: Interrupt) -> Result<Vec<PlacedTensor>> {
        self.check_has_values("placement")?;
        let value = self.value();
        value.session.locate(&value, interrupt)
    }

    /// Returns a copy placed by a signal's configuration.
    ///
    /// # Errors
    /// The tensor does not have an axis that the signal shards.
    #[track_caller]
    pub fn with_signal(&self, signal: &str, backward: Option<&str>) -> Result<Tensor> {
        self.check_axes(signal)?;
        signal::enter(signal, backward)?;
        let copy = self.apply_unary(&gt_ir::ops::shape::PLACE, smallvec::smallvec![]);
        signal::exit(signal)?;
        copy
    }

    /// Checks that the tensor has every axis that the signal shards. In a scope, an axis that a
    /// tensor does not have is not sharded; where one tensor is placed explicitly, it is an error.
    fn check_axes(&self, signal: &str) -> Result<()> {
        let shard = registry::get(signal).and_then(|config| config.shard);
        for axis in shard.iter().flat_map(|shard| &shard.mesh).filter_map(|axis| axis.axis) {
            gt_ir::shape::axis(axis, self.rank(), "signal.tensor")?;
        }
        Ok(())
    }
}
