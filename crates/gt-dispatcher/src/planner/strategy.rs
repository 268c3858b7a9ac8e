//! Chooses how a mesh computes an instruction: the sharding that moves the fewest bytes.
//!
//! Each mesh axis is assigned a factor of the operation's sharding rule, or none. All combinations
//! are ranked by the cost of redistributing operands and result.

use std::sync::Arc;

use gt_ir::layout::{Layout, Mesh, Placement, balanced_cuts};
use gt_ir::operation::Family;
use gt_ir::ops::shape;
use gt_ir::sharding::{FactorRun, Reduction, Rule, Runs};
use gt_ir::{Meta, Operation};
use smallvec::SmallVec;

use super::redistribution::{cost, cost_of_combining, even_cost};

/// An operand's meta and the layouts of its copies.
pub struct OperandLayouts<'a> {
    pub meta: Meta,
    pub layouts: SmallVec<[&'a Layout; 2]>,
}

/// How an instruction is divided along one mesh axis.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Division {
    /// Not divided: all slots compute the same.
    Replicated,
    /// Sharded along a factor.
    Factor(u8),
    /// Computed on the slots' partial sums of these operands (a bit set).
    Linear(u64),
}

/// A way to compute an instruction.
#[derive(Clone, Debug)]
pub struct Strategy {
    /// One entry per mesh axis.
    pub divisions: SmallVec<[Division; 2]>,
    /// The layout that each operand must have; `None` for numbers.
    pub operands: SmallVec<[Option<Layout>; 3]>,
    pub output: Layout,
    rank: StrategyRank,
}

/// The ranking key: fields in order of importance, less is better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct StrategyRank {
    /// 1 if the operation is `place` and the result is not where the scope wants it.
    misplaced: u8,
    /// Bytes sent now, and later to combine a partial result.
    bytes: u64,
    /// 1 if an update does not have the layout of the tensor that it updates.
    displaced: u8,
    /// Operands that must be sliced or redistributed.
    conversions: usize,
    /// 1 if a view is divided, or other work is not.
    unfit: u8,
    /// 1 if the result is not where the scope wants it.
    unwanted: u8,
}

/// The inputs of the choice.
pub struct Candidates<'a, 'b> {
    pub operation: &'static Operation,
    pub rule: &'a Rule,
    /// `None` for numbers.
    pub operands: &'a [Option<OperandLayouts<'b>>],
    pub output: Meta,
    pub mesh: &'a Arc<Mesh>,
    /// Where the scope wants the result.
    pub wanted: Option<&'a Layout>,
    /// The layout of the tensor that this updates: the result will be needed there.
    pub placed: Option<&'a Layout>,
}

impl Candidates<'_, '_> {
    /// Returns the best of all strategies.
    pub fn best(&self) -> Strategy {
        let mut best: Option<Strategy> = None;
        let mut consider = |divisions: &[Division]| {
            if let Some(strategy) = self.strategy(divisions)
                && best.as_ref().is_none_or(|best| strategy.rank < best.rank)
            {
                best = Some(strategy);
            }
        };
        match self.mesh.dims.len() {
            1 => self.options(0).iter().for_each(|&division| consider(&[division])),
            _ => {
                let others = self.options(1);
                for &first in &self.options(0) {
                    for &second in &others {
                        // A factor is sharded over one mesh axis only.
                        if first != second || !matches!(first, Division::Factor(_)) {
                            consider(&[first, second]);
                        }
                    }
                }
            }
        }
        best.expect("every operation can be computed replicated")
    }

    /// Returns the possible divisions of a mesh axis; an axis of one slot does not divide anything.
    fn options(&self, mesh_axis: usize) -> SmallVec<[Division; 12]> {
        let mut options: SmallVec<[Division; 12]> = SmallVec::new();
        options.push(Division::Replicated);
        if self.mesh.dims[mesh_axis] > 1 {
            options.extend((0..self.rule.factors()).map(Division::Factor));
            options.extend(self.rule.linear.iter().map(|&set| Division::Linear(set)));
        }
        options
    }

    fn strategy(&self, divisions: &[Division]) -> Option<Strategy> {
        let mut operands: SmallVec<[Option<Layout>; 3]> = SmallVec::new();
        let (mut bytes, mut conversions) = (0, 0);
        for (index, known) in self.operands.iter().enumerate() {
            let Some(known) = known else {
                // A number cannot be a partial sum.
                let is_partial = |division: &Division| match division {
                    Division::Linear(set) => set >> index & 1 == 1,
                    _ => false,
                };
                if divisions.iter().any(is_partial) {
                    return None;
                }
                operands.push(None);
                continue;
            };
            let placements = divisions
                .iter()
                .enumerate()
                .map(|(mesh_axis, &division)| self.operand_placement(index, mesh_axis, division))
                .collect::<Option<_>>()?;
            let layout = Layout { mesh: Arc::clone(self.mesh), placements };
            let cheapest = known
                .layouts
                .iter()
                .filter_map(|from| {
                    even_cost(from, &layout, known.meta).map(|bytes| (bytes, **from != layout))
                })
                .min()?;
            bytes += cheapest.0;
            conversions += usize::from(cheapest.1);
            operands.push(Some(layout));
        }
        let placements = divisions
            .iter()
            .enumerate()
            .map(|(mesh_axis, &division)| self.output_placement(mesh_axis, division))
            .collect::<Option<_>>()?;
        let output = Layout { mesh: Arc::clone(self.mesh), placements };
        let back = self.placed.and_then(|placed| cost(&output, placed, self.output));
        let later = back.unwrap_or_else(|| cost_of_combining(&output, self.wanted, self.output));
        let displaced = u8::from(self.placed.is_some_and(|placed| *placed != output));
        let unwanted = u8::from(self.wanted.is_some_and(|wanted| *wanted != output));
        let misplaced = u8::from(is_place(self.operation)) * unwanted;
        let (bytes_in_all, unfit) = (bytes + later, self.unfit(divisions));
        let rank = StrategyRank {
            misplaced,
            bytes: bytes_in_all,
            displaced,
            conversions,
            unfit,
            unwanted,
        };
        Some(Strategy { divisions: SmallVec::from_slice(divisions), operands, output, rank })
    }

    /// Returns 1 if a view is divided, or other work is not: views cost nothing, so a replica is
    /// worth more than a shard; other work is better divided.
    fn unfit(&self, divisions: &[Division]) -> u8 {
        if self.operands.iter().all(Option::is_none) {
            return 0;
        }
        let whole = divisions.iter().all(|division| *division == Division::Replicated);
        u8::from(is_view(self.operation) != whole)
    }

    fn operand_placement(
        &self,
        operand: usize,
        mesh_axis: usize,
        division: Division,
    ) -> Option<Placement> {
        match division {
            Division::Replicated => Some(Placement::Replicate),
            Division::Linear(set) if set >> operand & 1 == 1 => {
                // Only if the operand is a partial sum already.
                let known = self.operands[operand].as_ref()?;
                let partial = Placement::Partial(Reduction::Sum);
                let has = |layout: &&Layout| {
                    layout.mesh == *self.mesh && layout.placements[mesh_axis] == partial
                };
                known.layouts.iter().any(has).then_some(partial)
            }
            Division::Linear(_) => Some(Placement::Replicate),
            Division::Factor(factor) => {
                if let Some((axis, run)) = find(&self.rule.operands[operand], factor) {
                    let cuts = self.cuts(factor, mesh_axis)?;
                    return Some(Placement::Shard { axis, cuts: scaled(&cuts, run.inner) });
                }
                let reduced = self.rule.reduced.iter().any(|(other, _)| *other == factor);
                Some(if reduced && self.rule.adds_first && operand == 0 {
                    Placement::Partial(Reduction::Sum)
                } else {
                    Placement::Replicate
                })
            }
        }
    }

    fn output_placement(&self, mesh_axis: usize, division: Division) -> Option<Placement> {
        match division {
            Division::Replicated => Some(Placement::Replicate),
            Division::Linear(_) => Some(Placement::Partial(Reduction::Sum)),
            Division::Factor(factor) => {
                if let Some((axis, run)) = find(&self.rule.output, factor) {
                    let cuts = self.cuts(factor, mesh_axis)?;
                    return Some(Placement::Shard { axis, cuts: scaled(&cuts, run.inner) });
                }
                let reduced = self.rule.reduced.iter().find(|(other, _)| *other == factor);
                reduced.map(|(_, reduction)| Placement::Partial(*reduction))
            }
        }
    }

    /// Returns the cuts of a factor: those of the first operand that is sharded along it, or else
    /// balanced ones.
    fn cuts(&self, factor: u8, mesh_axis: usize) -> Option<Arc<[usize]>> {
        let mut length = None;
        for (known, runs) in self.operands.iter().zip(&self.rule.operands) {
            let (Some(known), Some((axis, run))) = (known, find(runs, factor)) else { continue };
            length = Some(known.meta.shape[axis] / run.inner);
            for layout in &known.layouts {
                if layout.mesh == *self.mesh
                    && let Placement::Shard { axis: cut, cuts } = &layout.placements[mesh_axis]
                    && *cut == axis
                    && cuts.iter().all(|cut| cut % run.inner == 0)
                {
                    let whole = run.inner == 1;
                    return Some(if whole {
                        Arc::clone(cuts)
                    } else {
                        cuts.iter().map(|cut| cut / run.inner).collect()
                    });
                }
            }
        }
        let length = length.or_else(|| {
            let (axis, run) = find(&self.rule.output, factor)?;
            Some(self.output.shape[axis] / run.inner)
        })?;
        Some(balanced_cuts(length, self.mesh.dims[mesh_axis]))
    }
}

/// Returns whether an operation only rearranges elements.
pub fn is_view(operation: &Operation) -> bool {
    let other = [shape::PLACE.id, shape::EXPAND.id];
    operation.family == Family::Reshape && !other.contains(&operation.id)
}

/// Returns whether an operation's purpose is the placement of its result.
pub fn is_place(operation: &Operation) -> bool {
    operation.id == shape::PLACE.id
}

fn find(runs: &Runs, factor: u8) -> Option<(usize, FactorRun)> {
    let place = |run: &Option<FactorRun>| run.is_some_and(|run| run.factor == factor);
    let axis = runs.iter().position(place)?;
    Some((axis, runs[axis].expect("found by its factor")))
}

fn scaled(cuts: &Arc<[usize]>, inner: usize) -> Arc<[usize]> {
    if inner == 1 { Arc::clone(cuts) } else { cuts.iter().map(|cut| cut * inner).collect() }
}
