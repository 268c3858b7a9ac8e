//! Tensors that have failed.

use std::sync::Arc;

use gt_ir::TensorId;
use gt_ir::message::Failure;

use super::{Store, Stored};

impl<T> Store<T> {
    /// The failures of all tensors that have failed, in the order of their names.
    pub fn failures(&self) -> Vec<&Arc<Failure>> {
        let failed = self.tensors.iter().filter_map(|(id, stored)| match stored {
            Stored::Failed(failure) => Some((*id, failure)),
            _ => None,
        });
        let mut failed: Vec<_> = failed.collect();
        failed.sort_unstable_by_key(|(id, _)| *id);
        failed.into_iter().map(|(_, failure)| failure).collect()
    }

    /// The first failure in the program among these tensors'.
    pub fn first_failure(&self, ids: impl Iterator<Item = TensorId>) -> Option<&Arc<Failure>> {
        let failed = ids.filter_map(|id| match self.get(id) {
            Some(Stored::Failed(failure)) => Some(failure),
            _ => None,
        });
        failed.min_by_key(|failure| failure.order())
    }
}
