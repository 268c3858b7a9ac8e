//! Records how the slices of an iteration are planned, so that its template can be written.

use std::sync::Arc;

use gt_ir::layout::Layout;
use gt_ir::{Shape, TensorId, TransferId};
use rustc_hash::{FxHashMap, FxHashSet};

/// A slice moved by an exchange, whose blocks follow from the slice's position.
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

    /// Registers an exchange that moves a slice: the same exchange works for other positions.
    pub fn takes(&mut self, transfer: TransferId, taken: Taken) {
        // Only exchanges of one iteration are looked up, so later ones need not be kept.
        if self.taken.len() < gt_ir::template::MAX_STEPS {
            self.taken.insert(transfer, taken);
        }
    }

    /// Registers a slice whose plan holds for this position only.
    pub fn is_fixed(&mut self, output: TensorId) {
        if self.fixed.len() < gt_ir::template::MAX_STEPS {
            self.fixed.insert(output);
        }
    }

    /// The slice that an exchange moves.
    pub fn taken(&self, transfer: TransferId) -> Option<&Taken> {
        self.taken.get(&transfer)
    }

    /// Whether a slice's plan holds for its position only.
    pub fn was_fixed(&self, output: TensorId) -> bool {
        self.fixed.contains(&output)
    }
}
