//! Each slot's part of an instruction.

use std::sync::Arc;

use gt_ir::instruction::{Attribute, Instruction, Operands};
use gt_ir::layout::Placement;
use gt_ir::ops::{binary, shape};
use gt_ir::sharding::{LocalPart, Rule};
use gt_ir::{Meta, Operand, Scalar, SlotId, TensorId, WorkerCommand};
use smallvec::{SmallVec, smallvec};

use super::catalogue::{Catalogue, OperandMetas, TensorCopy};
use super::emit;
use super::strategy::{Division, Strategy};
use super::streams::Streams;

/// An instruction and its strategy, from which each slot's part follows.
pub(super) struct LocalParts<'a> {
    pub instruction: &'a Instruction,
    pub rule: &'a Rule,
    pub strategy: &'a Strategy,
    pub metas: &'a OperandMetas,
    pub meta: Meta,
}

impl LocalParts<'_> {
    /// Emits each slot's part; `operands` are the copies in the strategy's layouts.
    pub(super) fn emit(
        &self,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        operands: &[Option<TensorCopy>],
        output: TensorId,
    ) {
        let names: Operands = self
            .instruction
            .operands
            .iter()
            .zip(operands)
            .map(|(operand, copy)| match (operand, copy) {
                (Operand::Scalar(scalar), _) => Operand::Scalar(*scalar),
                (Operand::Tensor(_), Some(copy)) => Operand::Tensor(copy.id),
                (Operand::Tensor(id), None) => unreachable!("operand {id} was redistributed"),
            })
            .collect();
        let average = (self.rule.averaged && self.reduces()).then(|| catalogue.name());
        let mesh = Arc::clone(&self.strategy.output.mesh);
        for (rank, &slot) in mesh.slots.iter().enumerate() {
            self.emit_part(streams, slot, rank, &names, output, average);
        }
    }

    fn reduces(&self) -> bool {
        self.reduced().next().is_some()
    }

    /// Returns the mesh axes along which a reduced factor (one not in the output) is sharded.
    fn reduced(&self) -> impl Iterator<Item = (usize, u8)> + '_ {
        self.strategy.divisions.iter().enumerate().filter_map(|(mesh_axis, division)| {
            let Division::Factor(factor) = division else { return None };
            let reduced = self.rule.reduced.iter().any(|(other, _)| other == factor);
            reduced.then_some((mesh_axis, *factor))
        })
    }

    fn emit_part(
        &self,
        streams: &mut Streams,
        slot: SlotId,
        rank: usize,
        names: &Operands,
        output: TensorId,
        average: Option<TensorId>,
    ) {
        let block = self.strategy.output.block(self.meta.shape, rank);
        let part_meta = Meta::new(self.meta.dtype, block.shape);
        let line = self.instruction.source;
        let share = self.share(rank);
        if share == 0.0 && self.rule.adds_first {
            // Its shard of the factor is empty: the result is its summand.
            let dims = smallvec![Attribute::dims(&part_meta.shape)];
            let first = names[..1].iter().copied().collect();
            let (instruction, results) = (self.instruction, smallvec![part_meta]);
            let as_it_is = emit::part(instruction, &shape::RESHAPE, output, results, first, dims);
            return streams.push(slot, as_it_is);
        }
        if share == 0.0 {
            // Its shard of the factor is empty: it contributes the neutral element.
            let (mesh_axis, _) =
                self.reduced().next().expect("a share is 0 only if a factor is reduced");
            let Placement::Partial(reduction) = self.strategy.output.placements[mesh_axis] else {
                unreachable!("a reduced factor leaves partial values")
            };
            let value = emit::identity(reduction, self.meta.dtype);
            return streams.push(slot, emit::filled(output, value, part_meta, line));
        }
        let attributes = match self.instruction.operation.localize {
            Some(localize)
                if !self
                    .strategy
                    .divisions
                    .iter()
                    .all(|division| *division == Division::Replicated) =>
            {
                let operands: SmallVec<[_; 3]> = self
                    .strategy
                    .operands
                    .iter()
                    .zip(self.metas)
                    .map(|(layout, meta)| Some(layout.as_ref()?.block(meta.tensor()?.shape, rank)))
                    .collect();
                let part = LocalPart { operands: &operands, output: block, whole: self.meta.shape };
                localize(&self.instruction.attributes, &part)
            }
            _ => self.instruction.attributes.clone(),
        };
        let operation = self.instruction.operation;
        let run = |operation, output, operands, attributes| {
            let block = |meta: &Meta| self.strategy.output.block(meta.shape, rank).shape;
            let part = |meta: &Meta| Meta::new(meta.dtype, block(meta));
            let results = self.instruction.results.iter().map(part).collect();
            emit::part(self.instruction, operation, output, results, operands, attributes)
        };
        let Some(average) = average else {
            return streams.push(slot, run(operation, output, names.clone(), attributes));
        };
        streams.push(slot, run(operation, average, names.clone(), attributes));
        let weighed = smallvec![Operand::Tensor(average), Operand::Scalar(Scalar::Float(share))];
        streams.push(slot, run(&binary::MUL, output, weighed, smallvec![]));
        streams.push(slot, WorkerCommand::Free(average));
    }

    /// Returns the fraction of the reduced factors that this rank has; 1 is all.
    fn share(&self, rank: usize) -> f64 {
        self.reduced()
            .map(|(mesh_axis, factor)| {
                let cut = self.rule.operands.iter().zip(&self.strategy.operands).find_map(
                    |(runs, layout)| {
                        runs.iter().flatten().find(|run| run.factor == factor)?;
                        let layout = layout.as_ref()?;
                        let at = layout.mesh.coordinate(rank, mesh_axis);
                        match &layout.placements[mesh_axis] {
                            Placement::Shard { cuts, .. } => {
                                let whole = cuts[cuts.len() - 1];
                                Some((cuts[at + 1] - cuts[at]) as f64 / whole as f64)
                            }
                            _ => None,
                        }
                    },
                );
                cut.unwrap_or(1.0)
            })
            .product()
    }
}
