//! Emits worker commands: the stages of a redistribution, and each slot's part of an instruction.

use std::sync::Arc;

use gt_ir::exchange::{Collective, Exchange};
use gt_ir::instruction::{Attribute, Instruction, Operands, Results};
use gt_ir::ops::{create, shape, slice};
use gt_ir::redistribute::{Redistribution, SlotParts};
use gt_ir::sharding::{Block, Reduction};
use gt_ir::{
    Attributes, Meta, Operand, Operation, Scalar, SourceId, TensorId, TransferId, WorkerCommand,
};
use smallvec::smallvec;

use super::catalogue::{Catalogue, TensorCopy};
use super::chains;
use super::fabrics::SlotExchange;
use super::redistribution::{RedistributionStage, StageKind};
use super::streams::Streams;

/// Emits one stage of a redistribution, and returns the new copy.
pub fn stage(
    catalogue: &mut Catalogue,
    streams: &mut Streams,
    from: &TensorCopy,
    stage: &RedistributionStage,
    meta: Meta,
    line: SourceId,
) -> TensorCopy {
    let layout = Arc::new(stage.layout.clone());
    let to = TensorCopy { layout, id: catalogue.name(), made: 0 };
    let (whole, reduction) = (meta.shape, None);
    let redistribution = Redistribution { from: &from.layout, to: &to.layout, whole };
    match stage.kind {
        StageKind::Slice => slice(streams, from, &to, meta, line),
        StageKind::Zeros { mesh_axis } => zeros(streams, from, &to, meta, mesh_axis, line),
        StageKind::Blocks(collective) => {
            let parts = if stage.is_chain && !do_engines_fit(catalogue, from, &to) {
                chains::of_blocks(&from.layout, &to.layout, meta)
            } else {
                redistribution.of_blocks()
            };
            let exchanged = TensorExchange {
                from,
                to: &to,
                meta,
                collective,
                reduction,
                line,
                may_be_collective: true,
            };
            exchanged.emit(catalogue, streams, parts);
        }
        StageKind::Combine { mesh_axis, reduction, collective } => {
            let is_for_engines =
                reduction == Reduction::Sum && do_engines_fit(catalogue, from, &to);
            let parts = if stage.is_chain && !is_for_engines {
                chains::of_sums(&from.layout, &to.layout, meta, mesh_axis)
            } else {
                let need = |rank| to.layout.block(whole, rank);
                redistribution.parts(need, |rank| combined(from, &to, meta, mesh_axis, rank))
            };
            let reduction = Some(reduction);
            let exchanged = TensorExchange {
                from,
                to: &to,
                meta,
                collective,
                reduction,
                line,
                may_be_collective: true,
            };
            exchanged.emit(catalogue, streams, parts);
        }
    }
    to
}

/// Returns whether the engines of all slots can exchange a tensor themselves.
fn do_engines_fit(catalogue: &Catalogue, from: &TensorCopy, to: &TensorCopy) -> bool {
    let slots = &catalogue.slots;
    let mut all = [&from.layout.mesh.slots[..], &to.layout.mesh.slots[..]].concat();
    all.sort_unstable();
    all.dedup();
    let workers: Option<Vec<_>> = all.into_iter().map(|slot| slots.host(slot)).collect();
    workers.is_some_and(|workers| slots.fabrics().fit(&workers))
}

/// Returns an instruction that the planner adds.
pub fn instruction(
    operation: &'static Operation,
    output: TensorId,
    meta: Meta,
    operands: Operands,
    attributes: Attributes,
    line: SourceId,
) -> WorkerCommand {
    let (results, source, signal) = (smallvec![meta], line, 0);
    let made = Instruction { operation, output, results, operands, attributes, source, signal };
    WorkerCommand::Run(Arc::new(made))
}

/// Returns a slot's part of an instruction, or of its substitute there.
pub fn part(
    of: &Instruction,
    operation: &'static Operation,
    output: TensorId,
    results: Results,
    operands: Operands,
    attributes: Attributes,
) -> WorkerCommand {
    let (source, signal) = (of.source, of.signal);
    let made = Instruction { operation, output, results, operands, attributes, source, signal };
    WorkerCommand::Run(Arc::new(made))
}

fn slice(streams: &mut Streams, from: &TensorCopy, to: &TensorCopy, meta: Meta, line: SourceId) {
    for (rank, &slot) in to.layout.mesh.slots.iter().enumerate() {
        let outer = from.layout.block(meta.shape, rank);
        let need = to.layout.block(meta.shape, rank);
        if need.shape.numel() == 0 {
            let part = Meta::new(meta.dtype, need.shape);
            streams.push(slot, filled(to.id, Scalar::Int(0), part, line));
            continue;
        }
        let block = need.within(&outer);
        let operands = smallvec![Operand::Tensor(from.id)];
        let part = Meta::new(meta.dtype, need.shape);
        let region = block.region();
        streams.push(slot, instruction(&slice::SLICE, to.id, part, operands, region, line));
    }
}

/// Returns the command that fills a slot's part with one value.
pub fn filled(output: TensorId, value: Scalar, part: Meta, line: SourceId) -> WorkerCommand {
    let attributes = smallvec![Attribute::dims(&part.shape), Attribute::DType(part.dtype)];
    let operands = smallvec![Operand::Scalar(value)];
    instruction(&create::FULL, output, part, operands, attributes, line)
}

fn zeros(
    streams: &mut Streams,
    from: &TensorCopy,
    to: &TensorCopy,
    meta: Meta,
    mesh_axis: usize,
    line: SourceId,
) {
    let mesh = &to.layout.mesh;
    for (rank, &slot) in mesh.slots.iter().enumerate() {
        let part = Meta::new(meta.dtype, to.layout.block(meta.shape, rank).shape);
        let command = if mesh.coordinate(rank, mesh_axis) == 0 {
            let attributes = smallvec![Attribute::dims(&part.shape)];
            let operands = smallvec![Operand::Tensor(from.id)];
            instruction(&shape::RESHAPE, to.id, part, operands, attributes, line)
        } else {
            filled(to.id, Scalar::Int(0), part, line)
        };
        streams.push(slot, command);
    }
}

/// Returns the source ranks and blocks that rank `rank` of the target combines, along the mesh
/// axis.
fn combined(
    from: &TensorCopy,
    to: &TensorCopy,
    meta: Meta,
    mesh_axis: usize,
    rank: usize,
) -> Vec<(usize, Block)> {
    let need = to.layout.block(meta.shape, rank);
    if need.shape.numel() == 0 {
        return Vec::new();
    }
    if from.layout.mesh == to.layout.mesh {
        from.layout.mesh.line(rank, mesh_axis).map(|source| (source, need)).collect()
    } else {
        (0..from.layout.mesh.size()).map(|source| (source, need)).collect()
    }
}

/// An exchange, without the slots' parts.
pub struct TensorExchange<'a> {
    pub from: &'a TensorCopy,
    pub to: &'a TensorCopy,
    /// The shape and dtype of the resulting tensor.
    pub meta: Meta,
    pub collective: Collective,
    pub reduction: Option<Reduction>,
    pub line: SourceId,
    /// Whether engines may run it as a collective.
    pub may_be_collective: bool,
}

impl TensorExchange<'_> {
    /// Emits each slot's part, as a collective where the engines can; returns the transfer.
    pub fn emit(
        &self,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        parts: Vec<SlotParts>,
    ) -> TransferId {
        let TensorExchange { from, to, meta, collective, reduction, line, may_be_collective } =
            *self;
        let transfer = catalogue.transfer();
        let exchange = |parts: SlotParts| {
            let output = parts.rank.map(|rank| {
                (to.id, Meta::new(meta.dtype, to.layout.block(meta.shape, rank).shape))
            });
            let input = parts.has_input.then_some(from.id);
            let (slot, hops, parts, engine_collective) =
                (parts.slot, parts.hops, parts.parts, None);
            let exchange = Exchange {
                transfer,
                collective,
                input,
                output,
                parts,
                hops,
                reduction,
                engine_collective,
                line,
            };
            (slot, exchange)
        };
        let mut made: Vec<SlotExchange> = parts.into_iter().map(exchange).collect();
        let slots = &catalogue.slots;
        if may_be_collective {
            slots.fabrics().mark_collectives(&mut made, |slot| slots.host(slot));
        }
        for (slot, exchange) in made {
            streams.push(slot, WorkerCommand::Exchange(Box::new(exchange)));
        }
        transfer
    }
}

/// Returns the neutral element of a reduction.
pub fn identity(reduction: Reduction, dtype: gt_ir::DType) -> Scalar {
    use gt_ir::DType::{Bool, I8, I16, I32, I64, U8};
    let bounds = match dtype {
        Bool => (0, 1),
        U8 => (0, i64::from(u8::MAX)),
        I8 => (i64::from(i8::MIN), i64::from(i8::MAX)),
        I16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        I64 => (i64::MIN, i64::MAX),
        _ => {
            return match reduction {
                Reduction::Sum => Scalar::Int(0),
                Reduction::Prod => Scalar::Int(1),
                Reduction::Max => Scalar::Float(f64::NEG_INFINITY),
                Reduction::Min => Scalar::Float(f64::INFINITY),
            };
        }
    };
    Scalar::Int(match reduction {
        Reduction::Sum => 0,
        Reduction::Prod => 1,
        Reduction::Max => bounds.0,
        Reduction::Min => bounds.1,
    })
}
