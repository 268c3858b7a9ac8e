//! Programs: plans prepared for repeated execution.
//!
//! Elementwise operations and the reductions among them are fused into groups. A group iterates
//! over its elements once, tile by tile: each operation finds its predecessor's tile in the cache,
//! and only values that other units need are written to memory. All other operations run one by
//! one, as without a plan. Results have the same bits and the same strides as those of the single
//! operations.
//!
//! - [`tile_kernel`]: elementwise operations on a tile; [`fold`] and [`epilogue`]: reductions.
//! - [`build`]: converts a trace to units; [`group`]: the definition of a group; [`verified`]:
//!   groups that are safe to execute.
//! - [`access`]: how a tile of a tensor is read; [`tiling`] and [`tiles`]: execution of a group
//!   tile by tile.
//! - [`launch`]: execution of a program; [`listing`]: its text.

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

use gt_ir::Trace;
use gt_worker::plan::Plan;

use verified::VerifiedGroup;

/// A plan's trace split into units.
pub struct NativeProgram {
    trace: Trace,
    /// By input, whether it is not used after the run.
    dies: Vec<bool>,
    units: Vec<Unit>,
    /// For each unit, the values that are not used after it.
    dying: Vec<Vec<u32>>,
    /// Whether the results were compared with those of the single operations.
    checked: bool,
    /// The first unit from which on no error can occur but lack of memory, so that inputs may be
    /// overwritten.
    infallible_from: usize,
}

/// What is executed at once.
enum Unit {
    /// A single step of the trace.
    Single(u32),
    Group(Box<VerifiedGroup>),
}

impl NativeProgram {
    /// Splits a plan into units.
    pub fn new(plan: Plan) -> NativeProgram {
        let Plan { trace, dies, .. } = plan;
        let units = build::units(&trace);
        let dying = build::dying(&trace, &units);
        let fails = |unit: &Unit| match unit {
            Unit::Single(step) => tile_kernel::can_fail(&trace.steps[*step as usize]),
            Unit::Group(_) => false,
        };
        let infallible_from = units.iter().rposition(fails).map_or(0, |last| last + 1);
        NativeProgram { trace, dies, units, dying, checked: false, infallible_from }
    }

    /// Returns whether the results have not been compared with those of the single operations yet.
    pub fn is_unchecked(&self) -> bool {
        !self.checked
    }

    /// Records whether the results equal those of the single operations. If not, the program
    /// executes the single operations from now on.
    pub fn judge(&mut self, is_right: bool) {
        self.checked = true;
        if !is_right {
            self.units = (0..self.trace.steps.len() as u32).map(Unit::Single).collect();
            self.dying = build::dying(&self.trace, &self.units);
            self.infallible_from = self.units.len();
        }
    }
}
