//! The undone steps of a lane, and its failures.

use std::collections::VecDeque;
use std::sync::Arc;

use gt_ir::TensorId;
use gt_ir::message::Failure;
use gt_ir::statistics::FailureSummary;
use rustc_hash::FxHashSet;

use super::Lane;

/// The most undone steps that are remembered.
const REMEMBERED: usize = 64;
/// The most failures that are listed.
const LISTED: usize = 64;

/// The undone steps of a lane, and the tensors that were assigned other values.
#[derive(Default)]
pub(crate) struct Undone {
    /// Tensors that were assigned another value since the last snapshot.
    pub changed: FxHashSet<TensorId>,
    /// The failures of the last undone steps.
    why: VecDeque<Arc<Failure>>,
    /// The failure of an undone step that was not reported to the dispatcher yet.
    pub untold: Option<Arc<Failure>>,
}

impl Undone {
    pub fn add(&mut self, failure: &Arc<Failure>) {
        if self.why.len() == REMEMBERED {
            self.why.pop_front();
        }
        self.why.push_back(Arc::clone(failure));
        self.untold.get_or_insert_with(|| Arc::clone(failure));
    }
}

impl<T> Lane<T> {
    /// Returns the failures of tensors and of undone steps, in program order.
    pub fn failures(&self) -> Vec<FailureSummary> {
        let mut all: Vec<FailureSummary> = Vec::new();
        let tensors = self.store.failures().into_iter().map(|failure| (failure, 1, 0));
        let steps = self.undone.why.iter().map(|failure| (failure, 0, 1));
        for (failure, tensors, steps) in tensors.chain(steps) {
            if let Some(known) = all.iter_mut().find(|known| known.failure == **failure) {
                known.tensors += tensors;
                known.steps += steps;
            } else if all.len() < LISTED {
                all.push(FailureSummary { failure: (**failure).clone(), tensors, steps });
            }
        }
        all.sort_by_key(|failed| failed.failure.order());
        all
    }
}
