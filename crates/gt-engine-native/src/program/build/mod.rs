//! From a plan to its units.
//!
//! Step by step, elementwise operations and reductions are put into groups; each other step is a
//! unit of its own.
//!
//! - Elementwise operations, and groups that join, here; [`reductions`].
//! - [`draft`]: the units while they are built.
//! - [`liveness`]: which of their values are needed outside, and for how long.

mod draft;
mod liveness;
mod reductions;

use gt_ir::ops::binary::POW;
use gt_ir::{Operand, Shape};
use gt_worker::plan::{Plan, PlanStep};
use rustc_hash::FxHashMap;

use super::Unit;
use super::group::{From, Group, GroupNode, GroupNodeKind, Space};
use super::micro::micro;
use draft::{Draft, GroupDraft, Home, is_number};
pub use liveness::dying;

/// Groups do not grow beyond this many nodes.
const MOST_NODES: usize = 256;

/// Cuts a plan into units, in an order in which each finds what it needs.
pub fn units(plan: &Plan) -> Vec<Unit> {
    let mut builder = Builder { plan, drafts: Vec::new(), homes: vec![Home::Input; plan.values()] };
    for (index, step) in plan.steps.iter().enumerate() {
        builder.step(index as u32, step);
    }
    builder.finish()
}

/// Cuts a plan into drafts of units, step by step.
struct Builder<'a> {
    plan: &'a Plan,
    drafts: Vec<Draft>,
    homes: Vec<Home>,
}

impl Builder<'_> {
    /// Puts a step into a group, or makes it a unit of its own.
    fn step(&mut self, index: u32, step: &PlanStep) {
        let value = self.plan.inputs.len() as u32 + index;
        let fused = step.output.shape.numel() > 0
            && (self.map(index, value, step) || self.fold(index, value, step));
        if !fused {
            self.homes[value as usize] = Home::Unit(self.drafts.len());
            self.drafts.push(Draft::Single(index));
        }
        // Only now: the step itself may have taken in a group that it reads.
        let unit = self.homes[value as usize].unit();
        for read in step.reads() {
            if let Home::Node { unit: home, .. } = self.homes[read as usize]
                && Some(home) != unit
                && let Draft::Group(draft) = &mut self.drafts[home]
            {
                draft.is_read = true;
            }
        }
    }

    /// The group in which the last of a step's operands is made, if all of them can be had there.
    fn group_of_last(&self, step: &PlanStep) -> Option<usize> {
        let homes = || step.reads().map(|value| self.homes[value as usize]);
        let last = homes().filter_map(Home::unit).max()?;
        let within = homes().all(|home| home != Home::Unit(last));
        let Draft::Group(draft) = &self.drafts[last] else { return None };
        (within && draft.group.nodes.len() < MOST_NODES).then_some(last)
    }

    /// Puts an elementwise step into a group.
    fn map(&mut self, index: u32, value: u32, step: &PlanStep) -> bool {
        let Some(micro) = micro(self.plan, step) else { return false };
        let shape = step.output.shape;
        let joined = self.group_of_last(step).filter(|&unit| self.accepts(unit, step));
        let unit = joined.unwrap_or_else(|| self.open(shape));
        self.gather(unit, step);
        let Draft::Group(draft) = &mut self.drafts[unit] else { unreachable!("it is a group") };
        let space = if shape == draft.group.shape { Space::Full } else { Space::Rows };
        let is_power = step.operation.id == POW.id;
        let mut inputs = [From::Input(0); 3];
        let mut kind = GroupNodeKind::Map(micro);
        for (place, source) in step.operands.iter().enumerate() {
            let wanted = micro.kernel.inputs()[place];
            inputs[place] = draft.read(self.plan, &self.homes, unit, *source, wanted, space);
            if let (true, 1, From::Input(input)) = (is_power, place, inputs[place])
                && is_number(self.plan, *source)
            {
                kind = GroupNodeKind::Power(input);
            }
        }
        let arity = step.operands.len();
        draft.group.cost += if space == Space::Full { micro.cost } else { 0 };
        let result = micro.kernel.result();
        let mut node = draft.push(GroupNode { kind, inputs, arity, space, dtype: result });
        if result != step.output.dtype {
            node = draft.cast(From::GroupNode(node), result, step.output.dtype, space);
        }
        draft.group.steps.push(index);
        draft.values.insert(value, node);
        self.homes[value as usize] = Home::Node { unit, node };
        true
    }

    /// Takes earlier groups that a step reads into its own, if nothing else has read them yet: their
    /// results need not go through memory.
    fn gather(&mut self, unit: usize, step: &PlanStep) {
        for value in step.reads() {
            let Home::Node { unit: home, .. } = self.homes[value as usize] else { continue };
            let [Draft::Group(earlier), Draft::Group(draft)] =
                [&self.drafts[home], &self.drafts[unit]]
            else {
                continue;
            };
            let nodes = earlier.group.nodes.len() + draft.group.nodes.len();
            if home == unit
                || earlier.is_read
                || nodes > MOST_NODES
                || step.output.shape != draft.group.shape
                || !draft.group.takes(&earlier.group)
                || !self.reads_as_made(home, step)
            {
                continue;
            }
            let Draft::Group(earlier) = std::mem::replace(&mut self.drafts[home], Draft::Gone)
            else {
                unreachable!("it was a group a line ago")
            };
            let Draft::Group(draft) = &mut self.drafts[unit] else { unreachable!("likewise") };
            let GroupDraft { group, values, .. } = *earlier;
            let offset = draft.group.take_in(group);
            for (value, node) in values {
                let node = node + offset;
                draft.values.insert(value, node);
                self.homes[value as usize] = Home::Node { unit, node };
            }
        }
    }

    /// Whether a group can compute an elementwise step.
    fn accepts(&self, unit: usize, step: &PlanStep) -> bool {
        let Draft::Group(draft) = &self.drafts[unit] else { return false };
        let group = &draft.group;
        let shape = step.output.shape;
        let is_full = shape == group.shape;
        let is_row = || group.split.map(|split| kept(group.shape, split)) == Some(shape);
        (is_full || is_row()) && self.reads_as_made(unit, step)
    }

    /// Whether a step reads what a group makes in the way it is made: an element for each row is
    /// one for all of the row, and not one for each column, as it is when the folded axes are gone.
    fn reads_as_made(&self, unit: usize, step: &PlanStep) -> bool {
        let Draft::Group(draft) = &self.drafts[unit] else { return false };
        let group = &draft.group;
        step.operands.iter().filter_map(Operand::tensor).all(|value| {
            let Home::Node { unit: home, node } = self.homes[*value as usize] else { return true };
            if home != unit {
                return true;
            }
            let meta = self.plan.meta(*value).tensor().copied().expect("a node makes a tensor");
            match group.nodes[node as usize].space {
                Space::Full => step.output.shape == group.shape,
                Space::Rows => {
                    let split = group.split.expect("where there are rows they end somewhere");
                    meta.shape == kept(group.shape, split)
                }
            }
        })
    }

    /// Begins a group; gives the number of its unit.
    fn open(&mut self, shape: Shape) -> usize {
        let group = Group {
            shape,
            steps: Vec::new(),
            split: None,
            inputs: Vec::new(),
            nodes: Vec::new(),
            ends: Vec::new(),
            outputs: Vec::new(),
            cost: 0,
        };
        let values = FxHashMap::default();
        let draft = GroupDraft { group, values, is_read: false };
        self.drafts.push(Draft::Group(Box::new(draft)));
        self.drafts.len() - 1
    }
}

/// The shape of one element for each row, with the axes of rows kept as ones.
fn kept(shape: Shape, split: usize) -> Shape {
    (split..shape.rank()).fold(shape, |shape, axis| shape.with(axis, 1))
}
