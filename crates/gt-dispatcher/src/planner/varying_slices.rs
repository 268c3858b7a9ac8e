//! The parts of an iteration's plan that vary with the iteration's numbers, recorded so that its
//! template can be written: the positions of slices, and the numbers that composites take.

use std::sync::Arc;

use gt_ir::layout::Layout;
use gt_ir::{Shape, TensorId, TransferId};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// A slice computed by an exchange, whose blocks follow from the slice's position.
#[derive(Clone)]
pub struct SlicedExchange {
    pub output: TensorId,
    pub whole: Shape,
    pub from: Arc<Layout>,
    pub size: Shape,
    pub to: Arc<Layout>,
}

/// A step of a composite that takes numbers of the composite unchanged.
#[derive(Clone)]
pub struct CompositeStep {
    /// The result of the composite.
    pub composite: TensorId,
    /// Operands of the step, and the indices of the composite's operands that they are.
    pub numbers: SmallVec<[(usize, usize); 2]>,
}

/// The varying slices and composites that were planned since the last [`VaryingSlices::clear`].
#[derive(Clone, Default)]
pub struct VaryingSlices {
    exchanges: FxHashMap<TransferId, SlicedExchange>,
    composite_steps: FxHashMap<TensorId, CompositeStep>,
    fixed: FxHashSet<TensorId>,
}

impl VaryingSlices {
    /// Forgets everything registered, before an iteration is planned.
    pub fn clear(&mut self) {
        self.exchanges.clear();
        self.composite_steps.clear();
        self.fixed.clear();
    }

    /// Registers an exchange that computes a slice: the same exchange works for other positions.
    pub fn add_exchange(&mut self, transfer: TransferId, exchange: SlicedExchange) {
        // Only exchanges of one iteration are looked up, so later ones need not be stored.
        if self.exchanges.len() < gt_ir::template::MAX_STEPS {
            self.exchanges.insert(transfer, exchange);
        }
    }

    /// Registers a step of a composite, by its result: it works for other numbers, too.
    pub fn add_composite_step(&mut self, output: TensorId, step: CompositeStep) {
        if self.composite_steps.len() < gt_ir::template::MAX_STEPS {
            self.composite_steps.insert(output, step);
        }
    }

    /// Registers an instruction whose plan is valid for its numbers only, such as a slice's
    /// position.
    pub fn fix(&mut self, output: TensorId) {
        if self.fixed.len() < gt_ir::template::MAX_STEPS {
            self.fixed.insert(output);
        }
    }

    /// Returns the slice that an exchange computes.
    pub fn sliced_exchange(&self, transfer: TransferId) -> Option<&SlicedExchange> {
        self.exchanges.get(&transfer)
    }

    /// Returns the step of a composite that makes a tensor, if numbers of the composite are its
    /// operands.
    pub fn composite_step(&self, output: TensorId) -> Option<&CompositeStep> {
        self.composite_steps.get(&output)
    }

    /// Returns whether an instruction's plan is valid for its numbers only.
    pub fn is_fixed(&self, output: TensorId) -> bool {
        self.fixed.contains(&output)
    }
}
