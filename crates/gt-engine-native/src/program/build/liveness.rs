//! Liveness: only values that other units need are written to memory, and the memory of dead values
//! is reused.

use gt_ir::trace::Trace;
use gt_ir::{Meta, Operand};

use super::Builder;
use super::draft::{Draft, GroupDraft};
use crate::program::Unit;
use crate::program::group::{
    Granularity, Group, GroupInput, GroupNode, GroupNodeKind, NodeSource, Output,
};
use crate::program::verified::VerifiedGroup;

/// Returns, for each unit, the values that are not needed after it. The trace's outputs are needed
/// to the end.
pub fn dying(trace: &Trace, units: &[Unit]) -> Vec<Vec<u32>> {
    let mut last: Vec<Option<usize>> = vec![None; trace.values()];
    for (index, unit) in units.iter().enumerate() {
        let mut uses = |value: u32| last[value as usize] = Some(index);
        match unit {
            Unit::Single(step) => trace.steps[*step as usize].reads().for_each(&mut uses),
            Unit::Group(group) => {
                let sources = group.inputs.iter().filter_map(|input| input.source.tensor());
                sources.for_each(|&value| uses(value));
            }
        }
    }
    let mut dying = vec![Vec::new(); units.len()];
    for (value, last) in last.into_iter().enumerate() {
        if let Some(last) = last
            && !trace.outputs.contains(&(value as u32))
        {
            dying[last].push(value as u32);
        }
    }
    dying
}

impl Builder<'_> {
    /// Returns the units, once it is known which values other units need.
    pub(super) fn finish(self) -> Vec<Unit> {
        let Builder { trace, drafts, origins } = self;
        let mut unit_of_step = vec![usize::MAX; trace.steps.len()];
        for (unit, draft) in drafts.iter().enumerate() {
            match draft {
                Draft::Gone => {}
                Draft::Single(step) => unit_of_step[*step as usize] = unit,
                Draft::Group(draft) => {
                    draft.group.steps.iter().for_each(|&step| unit_of_step[step as usize] = unit);
                }
            }
        }
        let mut outside = vec![false; trace.values()];
        trace.outputs.iter().for_each(|&value| outside[value as usize] = true);
        let mut last_unit = vec![0; trace.values()];
        for (index, step) in trace.steps.iter().enumerate() {
            for value in step.reads() {
                let unit = unit_of_step[index];
                last_unit[value as usize] = unit.max(last_unit[value as usize]);
                outside[value as usize] |= origins[value as usize].unit() != Some(unit);
            }
        }
        trace.outputs.iter().for_each(|&value| last_unit[value as usize] = usize::MAX);
        let finished = drafts.into_iter().enumerate().filter_map(|(unit, draft)| match draft {
            Draft::Gone => None,
            Draft::Single(step) => Some(Unit::Single(step)),
            // A group of one operation runs as that operation.
            Draft::Group(draft) if draft.group.steps.len() == 1 => {
                Some(Unit::Single(draft.group.steps[0]))
            }
            Draft::Group(draft) => {
                let GroupDraft { mut group, values, .. } = *draft;
                let mut kept: Vec<(u32, u16)> =
                    values.into_iter().filter(|(value, _)| outside[*value as usize]).collect();
                kept.sort_unstable();
                let dies = |value: u32| last_unit[value as usize] == unit;
                for (value, node) in kept {
                    let meta = trace.meta(value).tensor().copied().expect("nodes compute tensors");
                    let replaces = replaced(trace, &group, node, meta, &dies);
                    group.outputs.push(Output { node, value, meta, replaces });
                }
                Some(Unit::Group(Box::new(VerifiedGroup::new(group))))
            }
        });
        finished.collect()
    }
}

/// Returns the inputs whose memory a node's result may take: those that no later node reads, and
/// that the node itself reads at most as the first operand of a kernel that may run in place.
fn replaced(
    trace: &Trace,
    group: &Group,
    node: u16,
    meta: Meta,
    dies: &dyn Fn(u32) -> bool,
) -> Vec<u16> {
    let writer = &group.nodes[node as usize];
    let GroupNodeKind::Map(tile_kernel) = writer.kind else { return Vec::new() };
    if writer.granularity != Granularity::PerElement {
        return Vec::new();
    }
    let may = |(index, input): (usize, &GroupInput)| {
        let Operand::Tensor(value) = input.source else { return None };
        let alike = group.inputs.iter().filter(|other| other.source == input.source).count();
        let fits = trace.meta(value) == Operand::Tensor(meta)
            && input.granularity == Granularity::PerElement
            && alike == 1
            && dies(value);
        let here = NodeSource::Input(index as u16);
        let read_later = group.nodes[node as usize + 1..].iter().any(|later| later.reads(here))
            || group.epilogues.iter().any(|epilogue| epilogue.from == here);
        let reads_it = writer.inputs[..writer.arity].iter().filter(|&&from| from == here).count();
        let in_place = reads_it == 0
            || reads_it == 1
                && writer.inputs[0] == here
                && tile_kernel.kernel.is_in_place_on(meta.dtype);
        (fits && !read_later && in_place).then_some(index as u16)
    };
    group.inputs.iter().enumerate().filter_map(may).collect()
}

impl GroupNode {
    fn reads(&self, from: NodeSource) -> bool {
        self.inputs[..self.arity].contains(&from)
    }
}
