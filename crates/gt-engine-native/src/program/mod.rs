//! Plans made ready to be run many times.
//!
//! Operations that work element by element, and the reductions among them, are put into groups. A
//! group goes once over its elements, a tile at a time: what one operation makes of a tile the next
//! finds in the cache, and only what is needed elsewhere is written to memory. All else is run
//! operation by operation, as without a plan. Results have the bits that the operations give one by
//! one, and lie in memory as theirs do.
//!
//! - [`tile_kernel`]: what an operation does to a tile; [`fold`] and [`epilogue`]: the same of reductions.
//! - [`build`]: from a plan to its units; [`group`]: what a group is; [`verified`]: which ones can be
//!   run.
//! - [`access`]: how a tile of a tensor is read; [`tiling`] and [`tiles`]: a group run tile by tile.
//! - [`launch`]: a program run; [`listing`]: one as text.

mod access;
mod build;
mod epilogue;
mod fold;
mod group;
mod launch;
mod listing;
mod tile_kernel;
mod tiles;
mod tiling;
mod verified;

use gt_worker::plan::Plan;

use verified::VerifiedGroup;

/// A plan, cut into units.
pub struct NativeProgram {
    plan: Plan,
    units: Vec<Unit>,
    /// For each unit, the values that are not used after it.
    dying: Vec<Vec<u32>>,
    /// Whether it was compared with its operations one by one.
    checked: bool,
    /// From which unit on nothing can fail but for want of memory, so that inputs may be overwritten.
    infallible_from: usize,
}

/// What is run at once.
enum Unit {
    /// A step of the plan by itself.
    Single(u32),
    Group(Box<VerifiedGroup>),
}

impl NativeProgram {
    /// Cuts a plan into units.
    pub fn new(plan: Plan) -> NativeProgram {
        let units = build::units(&plan);
        let dying = build::dying(&plan, &units);
        let fails = |unit: &Unit| match unit {
            Unit::Single(step) => tile_kernel::can_fail(&plan.steps[*step as usize]),
            Unit::Group(_) => false,
        };
        let infallible_from = units.iter().rposition(fails).map_or(0, |last| last + 1);
        NativeProgram { plan, units, dying, checked: false, infallible_from }
    }

    pub fn is_unchecked(&self) -> bool {
        !self.checked
    }

    /// Whether it gave what its operations give one by one. If not, these are its units.
    pub fn judge(&mut self, is_right: bool) {
        self.checked = true;
        if !is_right {
            self.units = (0..self.plan.steps.len() as u32).map(Unit::Single).collect();
            self.dying = build::dying(&self.plan, &self.units);
            self.infallible_from = self.units.len();
        }
    }
}
