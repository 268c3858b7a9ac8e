//! What the slices of an iteration depend on: noted while it is planned, for its template.

use std::sync::Arc;

use gt_ir::layout::Layout;
use gt_ir::{Shape, TensorId, TransferId};
use rustc_hash::{FxHashMap, FxHashSet};

/// A slice whose blocks follow from its place.
#[derive(Clone)]
pub struct Taken {
    pub output: TensorId,
    pub whole: Shape,
    pub from: Arc<Layout>,
    pub size: Shape,
    pub to: Arc<Layout>,
}

/// The slices that were planned since this was cleared.
#[derive(Default)]
pub struct Moving {
    taken: FxHashMap<TransferId, Taken>,
    fixed: FxHashSet<TensorId>,
}

impl Moving {
    pub fn clear(&mut self) {
        self.taken.clear();
        self.fixed.clear();
    }

    /// An exchange takes a slice, and may take it from elsewhere as well.
    pub fn takes(&mut self, transfer: TransferId, taken: Taken) {
        // Only what an iteration makes is asked for.
        if self.taken.len() < gt_ir::template::MAX_STEPS {
            self.taken.insert(transfer, taken);
        }
    }

    /// A slice is planned for its place alone.
    pub fn is_fixed(&mut self, output: TensorId) {
        if self.fixed.len() < gt_ir::template::MAX_STEPS {
            self.fixed.insert(output);
        }
    }

    /// The slice that an exchange has taken.
    pub fn taken(&self, transfer: TransferId) -> Option<&Taken> {
        self.taken.get(&transfer)
    }

    /// Whether a slice was planned for its place alone.
    pub fn was_fixed(&self, output: TensorId) -> bool {
        self.fixed.contains(&output)
    }
}
