//! Records what of an iteration's plan follows from its numbers, so that its template can be
//! written: the positions of slices, and the numbers that composites take.

use std::sync::Arc;

use gt_ir::layout::Layout;
use gt_ir::{Shape, TensorId, TransferId};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// A slice moved by an exchange, whose blocks follow from the slice's position.
#[derive(Clone)]
pub struct Taken {
    pub output: TensorId,
    pub whole: Shape,
    pub from: Arc<Layout>,
    pub size: Shape,
    pub to: Arc<Layout>,
}

/// A step of a composite that takes numbers of the composite as they are.
#[derive(Clone)]
pub struct Opened {
    /// What the composite makes.
    pub composite: TensorId,
    /// Operands of the step, and the composite's operands that they are.
    pub numbers: SmallVec<[(usize, usize); 2]>,
}

/// The slices and composites that were planned since this was cleared.
#[derive(Clone, Default)]
pub struct Moving {
    taken: FxHashMap<TransferId, Taken>,
    opened: FxHashMap<TensorId, Opened>,
    fixed: FxHashSet<TensorId>,
}

impl Moving {
    pub fn clear(&mut self) {
        self.taken.clear();
        self.opened.clear();
        self.fixed.clear();
    }

    /// Registers an exchange that moves a slice: the same exchange works for other positions.
    pub fn takes(&mut self, transfer: TransferId, taken: Taken) {
        // Only exchanges of one iteration are looked up, so later ones need not be kept.
        if self.taken.len() < gt_ir::template::MAX_STEPS {
            self.taken.insert(transfer, taken);
        }
    }

    /// Registers a step of a composite, by its result: it works for other numbers, too.
    pub fn opens(&mut self, output: TensorId, opened: Opened) {
        if self.opened.len() < gt_ir::template::MAX_STEPS {
            self.opened.insert(output, opened);
        }
    }

    /// Registers an instruction whose plan holds for its numbers only, such as a slice's position.
    pub fn is_fixed(&mut self, output: TensorId) {
        if self.fixed.len() < gt_ir::template::MAX_STEPS {
            self.fixed.insert(output);
        }
    }

    /// The slice that an exchange moves.
    pub fn taken(&self, transfer: TransferId) -> Option<&Taken> {
        self.taken.get(&transfer)
    }

    /// The step of a composite that makes a tensor, if numbers of the composite are its operands.
    pub fn opened(&self, output: TensorId) -> Option<&Opened> {
        self.opened.get(&output)
    }

    /// Whether an instruction's plan holds for its numbers only.
    pub fn was_fixed(&self, output: TensorId) -> bool {
        self.fixed.contains(&output)
    }
}
