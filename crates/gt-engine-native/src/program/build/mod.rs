//! Converts a trace to units.
//!
//! Elementwise operations and reductions are added to groups, step by step; each other step is a
//! unit of its own.
//!
//! - Here: elementwise operations, and merging of groups.
//! - [`reductions`] finds the reductions of a trace.
//! - [`draft`]: units under construction.
//! - [`liveness`]: which values other units need, and for how long.

mod draft;
mod liveness;
mod reductions;

use gt_ir::ops::binary::POW;
use gt_ir::trace::{Trace, TraceStep};
use gt_ir::{Operand, Shape};
use rustc_hash::FxHashMap;

use super::Unit;
use super::group::{Granularity, Group, GroupNode, GroupNodeKind, NodeSource};
use super::tile_kernel::tile_kernel;
use draft::{Draft, GroupDraft, ValueOrigin, is_number};
pub use liveness::dying;

/// The most nodes of a group.
const MOST_NODES: usize = 256;

/// Splits a trace into units, ordered so that each reads only results of earlier ones.
pub fn units(trace: &Trace) -> Vec<Unit> {
    let mut builder =
        Builder { trace, drafts: Vec::new(), origins: vec![ValueOrigin::Input; trace.values()] };
    for (index, step) in trace.steps.iter().enumerate() {
        builder.step(index as u32, step);
    }
    builder.finish()
}

/// Splits a trace into drafts of units, step by step.
struct Builder<'a> {
    trace: &'a Trace,
    drafts: Vec<Draft>,
    origins: Vec<ValueOrigin>,
}

impl Builder<'_> {
    /// Adds a step to a group, or makes it a unit of its own.
    fn step(&mut self, index: u32, step: &TraceStep) {
        let value = self.trace.value_of(index as usize);
        let is_fused = step.output.shape.numel() > 0
            && (self.add_elementwise(index, value, step) || self.add_reduction(index, value, step));
        if !is_fused {
            self.origins[value as usize] = ValueOrigin::Unit(self.drafts.len());
            self.drafts.push(Draft::Single(index));
        }
        // After the step was added: it may have merged a group that it reads.
        let unit = self.origins[value as usize].unit();
        for read in step.reads() {
            if let ValueOrigin::Node { unit: origin, .. } = self.origins[read as usize]
                && Some(origin) != unit
                && let Draft::Group(draft) = &mut self.drafts[origin]
            {
                draft.is_read = true;
            }
        }
    }

    /// Returns the group that computes the last of a step's operands, if all operands are available
    /// in it.
    fn group_of_last(&self, step: &TraceStep) -> Option<usize> {
        let origins = || step.reads().map(|value| self.origins[value as usize]);
        let last = origins().filter_map(ValueOrigin::unit).max()?;
        let within = origins().all(|origin| origin != ValueOrigin::Unit(last));
        let Draft::Group(draft) = &self.drafts[last] else { return None };
        (within && draft.group.nodes.len() < MOST_NODES).then_some(last)
    }

    /// Adds an elementwise step to a group; returns false if it is not elementwise.
    fn add_elementwise(&mut self, index: u32, value: u32, step: &TraceStep) -> bool {
        let Some(tile_kernel) = tile_kernel(self.trace, step) else { return false };
        let shape = step.output.shape;
        let joined = self.group_of_last(step).filter(|&unit| self.accepts(unit, step));
        let unit = joined.unwrap_or_else(|| self.open_group(shape));
        self.merge_producers(unit, step);
        let Draft::Group(draft) = &mut self.drafts[unit] else {
            unreachable!("the unit is a group")
        };
        let granularity =
            if shape == draft.group.shape { Granularity::PerElement } else { Granularity::PerRow };
        let is_power = step.operation.id == POW.id;
        let mut inputs = [NodeSource::Input(0); 3];
        let mut kind = GroupNodeKind::Map(tile_kernel);
        for (place, source) in step.operands.iter().enumerate() {
            let wanted = tile_kernel.kernel.inputs()[place];
            inputs[place] =
                draft.read(self.trace, &self.origins, unit, *source, wanted, granularity);
            if let (true, 1, NodeSource::Input(input)) = (is_power, place, inputs[place])
                && is_number(self.trace, *source)
            {
                kind = GroupNodeKind::Power(input);
            }
        }
        let arity = step.operands.len();
        draft.group.cost +=
            if granularity == Granularity::PerElement { tile_kernel.cost } else { 0 };
        let result = tile_kernel.kernel.result();
        let mut node = draft.push(GroupNode { kind, inputs, arity, granularity, dtype: result });
        if result != step.output.dtype {
            node = draft.cast(NodeSource::Node(node), result, step.output.dtype, granularity);
        }
        draft.group.steps.push(index);
        draft.values.insert(value, node);
        self.origins[value as usize] = ValueOrigin::Node { unit, node };
        true
    }

    /// Merges earlier groups that a step reads into its group, unless other units have read them:
    /// their results then need not be written to memory.
    fn merge_producers(&mut self, unit: usize, step: &TraceStep) {
        for value in step.reads() {
            let ValueOrigin::Node { unit: origin, .. } = self.origins[value as usize] else {
                continue;
            };
            let [Draft::Group(earlier), Draft::Group(draft)] =
                [&self.drafts[origin], &self.drafts[unit]]
            else {
                continue;
            };
            let nodes = earlier.group.nodes.len() + draft.group.nodes.len();
            if origin == unit
                || earlier.is_read
                || nodes > MOST_NODES
                || step.output.shape != draft.group.shape
                || !draft.group.can_merge(&earlier.group)
                || !self.reads_granularity(origin, step)
            {
                continue;
            }
            let Draft::Group(earlier) = std::mem::replace(&mut self.drafts[origin], Draft::Gone)
            else {
                unreachable!("the origin is a group")
            };
            let Draft::Group(draft) = &mut self.drafts[unit] else {
                unreachable!("the unit is a group")
            };
            let GroupDraft { group, values, .. } = *earlier;
            let offset = draft.group.merge(group);
            for (value, node) in values {
                let node = node + offset;
                draft.values.insert(value, node);
                self.origins[value as usize] = ValueOrigin::Node { unit, node };
            }
        }
    }

    /// Returns whether a group can compute an elementwise step.
    fn accepts(&self, unit: usize, step: &TraceStep) -> bool {
        let Draft::Group(draft) = &self.drafts[unit] else { return false };
        let group = &draft.group;
        let shape = step.output.shape;
        let is_full = shape == group.shape;
        let is_row = || group.split.map(|split| row_shape(group.shape, split)) == Some(shape);
        (is_full || is_row()) && self.reads_granularity(unit, step)
    }

    /// Returns whether a step reads the group's values with the granularity in which they are
    /// computed. A value for each row must broadcast along the row; if the reduced axes were
    /// dropped, it would broadcast along the columns.
    fn reads_granularity(&self, unit: usize, step: &TraceStep) -> bool {
        let Draft::Group(draft) = &self.drafts[unit] else { return false };
        let group = &draft.group;
        step.operands.iter().filter_map(Operand::tensor).all(|value| {
            let ValueOrigin::Node { unit: origin, node } = self.origins[*value as usize] else {
                return true;
            };
            if origin != unit {
                return true;
            }
            let meta = self.trace.meta(*value).tensor().copied().expect("nodes compute tensors");
            match group.nodes[node as usize].granularity {
                Granularity::PerElement => step.output.shape == group.shape,
                Granularity::PerRow => {
                    let split = group.split.expect("a group with row nodes has a split");
                    meta.shape == row_shape(group.shape, split)
                }
            }
        })
    }

    /// Starts a group and returns the number of its unit.
    fn open_group(&mut self, shape: Shape) -> usize {
        let group = Group {
            shape,
            steps: Vec::new(),
            split: None,
            inputs: Vec::new(),
            nodes: Vec::new(),
            epilogues: Vec::new(),
            outputs: Vec::new(),
            cost: 0,
        };
        let values = FxHashMap::default();
        let draft = GroupDraft { group, values, is_read: false };
        self.drafts.push(Draft::Group(Box::new(draft)));
        self.drafts.len() - 1
    }
}

/// Returns the shape of a value for each row: the axes within rows have length 1.
fn row_shape(shape: Shape, split: usize) -> Shape {
    (split..shape.rank()).fold(shape, |shape, axis| shape.with(axis, 1))
}
