//! Commands for workers: the stages of a move, and each worker's part of an instruction.

use std::sync::Arc;

use gt_ir::exchange::{Collective, Exchange, Origin, Source};
use gt_ir::instruction::{Attribute, Instruction, Operands};
use gt_ir::ops::{create, shape};
use gt_ir::sharding::{Block, Reduction};
use gt_ir::{Attributes, Command, Meta, Operand, Operation, Scalar, SourceId, TensorId, WorkerId};
use smallvec::smallvec;

use super::fabrics::Fabrics;
use super::moves::{Stage, StageKind, sources};
use super::streams::Streams;
use super::tensors::{Copy, Tensors};

/// Carries out one stage of a move of a tensor; gives the new copy.
pub fn stage(
    tensors: &mut Tensors,
    streams: &mut Streams,
    fabrics: &Fabrics,
    from: &Copy,
    stage: &Stage,
    meta: Meta,
    line: SourceId,
) -> Copy {
    let to = Copy { layout: Arc::new(stage.layout.clone()), id: tensors.worker_name(), made: 0 };
    match stage.kind {
        StageKind::Slice => slice(streams, from, &to, meta, line),
        StageKind::Zeros { mesh_axis } => zeros(streams, from, &to, meta, mesh_axis, line),
        StageKind::Blocks(collective) => {
            let parts = |rank: usize| sources(&from.layout, &to.layout, meta.shape, rank);
            let mut made = exchange(tensors, from, &to, meta, collective, None, line, parts);
            fabrics.join(&mut made);
            push(streams, made);
        }
        StageKind::Combine { mesh_axis, reduction, collective } => {
            let parts = |rank: usize| combined(from, &to, meta, mesh_axis, rank);
            let reduction = Some(reduction);
            let mut made = exchange(tensors, from, &to, meta, collective, reduction, line, parts);
            fabrics.join(&mut made);
            push(streams, made);
        }
    }
    to
}

/// An instruction of the planner's own.
pub fn instruction(
    operation: &'static Operation,
    output: TensorId,
    operands: Operands,
    attributes: Attributes,
    line: SourceId,
) -> Command {
    Command::Run(Instruction { operation, output, operands, attributes, source: line, signal: 0 })
}

/// A worker's part of an instruction, or of what stands for it there.
pub fn part(
    of: &Instruction,
    operation: &'static Operation,
    output: TensorId,
    operands: Operands,
    attributes: Attributes,
) -> Command {
    let (source, signal) = (of.source, of.signal);
    Command::Run(Instruction { operation, output, operands, attributes, source, signal })
}

fn slice(streams: &mut Streams, from: &Copy, to: &Copy, meta: Meta, line: SourceId) {
    for (rank, &worker) in to.layout.mesh.workers.iter().enumerate() {
        let outer = from.layout.block(meta.shape, rank);
        let need = to.layout.block(meta.shape, rank);
        if need.shape.numel() == 0 {
            let part = Meta::new(meta.dtype, need.shape);
            streams.push(worker, filled(to.id, Scalar::Int(0), part, line));
            continue;
        }
        let block = need.within(&outer);
        let operands = smallvec![Operand::Tensor(from.id)];
        streams.push(worker, instruction(&shape::SLICE, to.id, operands, block.region(), line));
    }
}

/// A tensor of one number for a worker's part.
pub fn filled(output: TensorId, value: Scalar, part: Meta, line: SourceId) -> Command {
    let attributes = smallvec![Attribute::dims(&part.shape), Attribute::DType(part.dtype)];
    instruction(&create::FULL, output, smallvec![Operand::Scalar(value)], attributes, line)
}

fn zeros(
    streams: &mut Streams,
    from: &Copy,
    to: &Copy,
    meta: Meta,
    mesh_axis: usize,
    line: SourceId,
) {
    let mesh = &to.layout.mesh;
    for (rank, &worker) in mesh.workers.iter().enumerate() {
        let part = Meta::new(meta.dtype, to.layout.block(meta.shape, rank).shape);
        let command = if mesh.coordinate(rank, mesh_axis) == 0 {
            let attributes = smallvec![Attribute::dims(&part.shape)];
            let operands = smallvec![Operand::Tensor(from.id)];
            instruction(&shape::RESHAPE, to.id, operands, attributes, line)
        } else {
            filled(to.id, Scalar::Int(0), part, line)
        };
        streams.push(worker, command);
    }
}

/// The partial values that rank `rank` of the target combines: all along the mesh axis.
fn combined(
    from: &Copy,
    to: &Copy,
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

fn push(streams: &mut Streams, parts: Vec<Exchange>) {
    for part in parts {
        streams.push(part.worker, Command::Exchange(Box::new(part)));
    }
}

/// Each worker's part of an exchange in which rank `rank` of the target gets `parts(rank)`.
#[allow(clippy::too_many_arguments, reason = "they are all that an exchange is")]
fn exchange(
    tensors: &mut Tensors,
    from: &Copy,
    to: &Copy,
    meta: Meta,
    collective: Collective,
    reduction: Option<Reduction>,
    line: SourceId,
    parts: impl Fn(usize) -> Vec<(usize, Block)>,
) -> Vec<Exchange> {
    let transfer = tensors.transfer();
    let (source_mesh, target_mesh) = (&from.layout.mesh, &to.layout.mesh);
    let mut sends: Vec<Vec<(WorkerId, Block)>> = vec![Vec::new(); source_mesh.size()];
    let mut receives: Vec<Vec<Source>> = Vec::with_capacity(target_mesh.size());
    for (rank, &worker) in target_mesh.workers.iter().enumerate() {
        let need = to.layout.block(meta.shape, rank);
        let mut taken = Vec::new();
        for (source, block) in parts(rank) {
            let holder = source_mesh.workers[source];
            let there = block.within(&from.layout.block(meta.shape, source));
            let at = block.within(&need);
            if holder == worker {
                taken.push(Source { from: Origin::Own(there), at });
            } else {
                sends[source].push((worker, there));
                taken.push(Source { from: Origin::Worker(holder), at });
            }
        }
        receives.push(taken);
    }
    let part = |worker: WorkerId, sends: Vec<(WorkerId, Block)>, rank: Option<usize>| {
        let holds = source_mesh.rank_of(worker).is_some();
        let output = rank.map(|rank| {
            let shape = to.layout.block(meta.shape, rank).shape;
            (to.id, Meta::new(meta.dtype, shape))
        });
        let sources = rank.map(|rank| receives[rank].clone()).unwrap_or_default();
        Exchange {
            transfer,
            worker,
            collective,
            input: holds.then_some(from.id),
            sends,
            output,
            sources,
            reduction,
            joint: None,
            line,
        }
    };
    let mut made = Vec::with_capacity(source_mesh.size().max(target_mesh.size()));
    for (rank, &worker) in source_mesh.workers.iter().enumerate() {
        let target = target_mesh.rank_of(worker);
        let sends = std::mem::take(&mut sends[rank]);
        if target.is_some() || !sends.is_empty() {
            made.push(part(worker, sends, target));
        }
    }
    for (rank, &worker) in target_mesh.workers.iter().enumerate() {
        if source_mesh.rank_of(worker).is_none() {
            made.push(part(worker, Vec::new(), Some(rank)));
        }
    }
    made
}

/// The number that changes nothing when it is combined.
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
