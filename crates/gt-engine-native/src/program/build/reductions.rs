//! Reductions in groups: reductions of rows are nodes, reductions of columns and of all elements
//! are epilogues.

use gt_ir::Operand;
use gt_ir::shape::axes;
use gt_ir::trace::TraceStep;

use super::Builder;
use super::draft::{Draft, ValueOrigin};
use crate::program::fold::{Folding, folding};
use crate::program::group::{Epilogue, EpilogueKind, Granularity, Group, GroupNode, GroupNodeKind};

/// The longest rows that are reduced in a group, as a tile holds whole rows.
const LONGEST_ROW: usize = 8192;
/// The most columns that a group reduces: each piece has a total for each of them.
const MOST_COLUMNS: usize = 1 << 16;

impl Builder<'_> {
    /// Adds a reduction to a group, as a node if it reduces rows, else as an epilogue; returns
    /// false if it cannot be added.
    pub(super) fn add_reduction(&mut self, index: u32, value: u32, step: &TraceStep) -> bool {
        let Some(&operand) = step.operands.first().and_then(Operand::tensor) else { return false };
        let Some(meta) = self.trace.meta(operand).tensor().copied() else { return false };
        let Some(folding) = folding(step, meta.dtype) else { return false };
        if meta.shape.numel() == 0 {
            return false;
        }
        let rank = meta.shape.rank();
        let given = gt_ir::operation::ints(&step.attributes, 0);
        let Ok(mut reduced_axes) = axes(given, rank, "reduce") else { return false };
        reduced_axes.sort_unstable();
        let count = reduced_axes.len();
        let is_last = reduced_axes.iter().copied().eq(rank - count..rank);
        let is_first = reduced_axes.iter().copied().eq(0..count);
        let split = if is_last { rank - count } else { count };
        let dims = meta.shape.dims();
        let row: usize = dims[split..].iter().product();
        let fits = |group: &Group| group.split.is_none_or(|known| known == split);
        let joined = self.group_of_last(step).filter(|&unit| match &self.drafts[unit] {
            Draft::Group(draft) => draft.group.shape == meta.shape,
            Draft::Single(_) | Draft::Gone => false,
        });
        let group = joined.and_then(|unit| match &self.drafts[unit] {
            Draft::Group(draft) => Some(&draft.group),
            Draft::Single(_) | Draft::Gone => None,
        });
        // Columns of one element are a single run, too.
        if is_last && split == 0 || is_first && row == 1 {
            return joined.is_some_and(|unit| {
                self.add_epilogue(unit, index, value, step, operand, folding, EpilogueKind::Total)
            });
        }
        if is_last && row <= LONGEST_ROW && group.is_none_or(fits) {
            let unit = joined.unwrap_or_else(|| self.open_group(meta.shape));
            let Draft::Group(draft) = &mut self.drafts[unit] else {
                unreachable!("the unit is a group")
            };
            draft.group.split = Some(split);
            let source = Operand::Tensor(operand);
            let from = draft.read(
                self.trace,
                &self.origins,
                unit,
                source,
                folding.dtype(),
                Granularity::PerElement,
            );
            let (kind, inputs) = (GroupNodeKind::Fold(folding), [from; 3]);
            let dtype = folding.dtype();
            let node = draft.push(GroupNode {
                kind,
                inputs,
                arity: 1,
                granularity: Granularity::PerRow,
                dtype,
            });
            draft.group.cost += 1;
            draft.group.steps.push(index);
            draft.values.insert(value, node);
            self.origins[value as usize] = ValueOrigin::Node { unit, node };
            return true;
        }
        if is_first && count > 0 && row <= MOST_COLUMNS && group.is_some_and(fits) {
            let unit = joined.expect("a reduction belongs to a group");
            let Draft::Group(draft) = &mut self.drafts[unit] else {
                unreachable!("the unit is a group")
            };
            draft.group.split = Some(split);
            return self.add_epilogue(
                unit,
                index,
                value,
                step,
                operand,
                folding,
                EpilogueKind::Columns,
            );
        }
        false
    }

    /// Adds a reduction to a group as an epilogue.
    #[allow(clippy::too_many_arguments, reason = "they are all that an end is")]
    fn add_epilogue(
        &mut self,
        unit: usize,
        index: u32,
        value: u32,
        step: &TraceStep,
        operand: u32,
        folding: Folding,
        kind: EpilogueKind,
    ) -> bool {
        let Draft::Group(draft) = &mut self.drafts[unit] else { return false };
        let source = Operand::Tensor(operand);
        let from = draft.read(
            self.trace,
            &self.origins,
            unit,
            source,
            folding.dtype(),
            Granularity::PerElement,
        );
        draft.group.epilogues.push(Epilogue { folding, from, kind, value, meta: step.output });
        draft.group.cost += 1;
        draft.group.steps.push(index);
        self.origins[value as usize] = ValueOrigin::Unit(unit);
        true
    }
}
