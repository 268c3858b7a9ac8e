//! The records of signals and of exchanges between workers.

use std::sync::Arc;

use gt_ir::exchange::{Collective, Exchange, Origin, Source};
use gt_ir::fabric::{Fabric, Joint, Member, Way};
use gt_ir::sharding::{Block, Reduction};
use gt_ir::signal::{MeshAxis, Shard};
use gt_ir::{DType, Meta, Shape, SourceId, TensorId, TransferId, WorkerId};

use crate::wire::{DecodeError, Reader, Writer};

type Result<T> = std::result::Result<T, DecodeError>;

const REDUCTIONS: [Reduction; 4] =
    [Reduction::Sum, Reduction::Prod, Reduction::Max, Reduction::Min];

fn bad(what: &'static str, code: u8) -> DecodeError {
    DecodeError::BadCode { what, code: u64::from(code) }
}

pub fn encode_shard(out: &mut Writer, shard: &Shard) {
    out.u8(u8::from(shard.workers.is_some()));
    if let Some(workers) = &shard.workers {
        out.u32(workers.len() as u32);
        workers.iter().for_each(|&worker| out.u32(worker));
    }
    out.u8(shard.mesh.len() as u8);
    for axis in &shard.mesh {
        out.text(&axis.name);
        out.u32(axis.length);
        out.u8(u8::from(axis.axis.is_some()));
        out.u64(axis.axis.unwrap_or(0) as u64);
    }
}

pub fn decode_shard(from: &mut Reader) -> Result<Shard> {
    let workers = match from.u8()? {
        0 => None,
        1 => {
            let count = from.u32()? as usize;
            let count = from.count(count, 4)?;
            Some((0..count).map(|_| from.u32()).collect::<Result<_>>()?)
        }
        code => return Err(bad("a choice", code)),
    };
    let axes = from.u8()? as usize;
    // The planner knows meshes of one or two axes.
    if !(1..=2).contains(&axes) {
        return Err(bad("a mesh", axes as u8));
    }
    let mut mesh = Vec::with_capacity(axes);
    for _ in 0..axes {
        let (name, length) = (from.text()?, from.u32()?);
        let (cut, axis) = (from.u8()?, from.u64()? as i64);
        let axis = match cut {
            0 => None,
            1 => Some(axis),
            code => return Err(bad("a choice", code)),
        };
        mesh.push(MeshAxis { name, length, axis });
    }
    Ok(Shard { workers, mesh })
}

fn encode_block(out: &mut Writer, block: &Block) {
    out.u8(block.shape.rank() as u8);
    for axis in 0..block.shape.rank() {
        out.u64(block.starts[axis] as u64);
        out.u64(block.shape[axis] as u64);
    }
}

fn decode_block(from: &mut Reader) -> Result<Block> {
    let rank = from.u8()? as usize;
    let rank = from.count(rank, 16)?;
    let mut starts = [0; gt_ir::shape::MAX_RANK];
    let mut dims = Vec::with_capacity(rank);
    for axis in 0..rank {
        *starts.get_mut(axis).ok_or(DecodeError::BadShape)? = from.u64()? as usize;
        dims.push(from.u64()? as usize);
    }
    Ok(Block { starts, shape: Shape::new(&dims).map_err(|_| DecodeError::BadShape)? })
}

pub fn encode_meta(out: &mut Writer, meta: &Meta) {
    out.u8(meta.dtype as u8);
    out.u8(meta.shape.rank() as u8);
    meta.shape.iter().for_each(|&dim| out.u64(dim as u64));
}

pub fn decode_meta(from: &mut Reader) -> Result<Meta> {
    let code = from.u8()?;
    let dtype = DType::from_code(code).ok_or_else(|| bad("a dtype", code))?;
    let rank = from.u8()? as usize;
    let rank = from.count(rank, 8)?;
    let dims = (0..rank).map(|_| Ok(from.u64()? as usize)).collect::<Result<Vec<_>>>()?;
    Ok(Meta::new(dtype, Shape::new(&dims).map_err(|_| DecodeError::BadShape)?))
}

pub fn encode_exchange(out: &mut Writer, exchange: &Exchange) {
    out.u64(exchange.transfer.0);
    out.u32(exchange.worker.0);
    let collective = Collective::ALL.iter().position(|other| *other == exchange.collective);
    out.u8(collective.unwrap_or(0) as u8);
    out.u8(u8::from(exchange.input.is_some()));
    if let Some(input) = exchange.input {
        out.u64(input.0);
    }
    out.u32(exchange.sends.len() as u32);
    for (to, block) in &exchange.sends {
        out.u32(to.0);
        encode_block(out, block);
    }
    out.u8(u8::from(exchange.output.is_some()));
    if let Some((output, meta)) = &exchange.output {
        out.u64(output.0);
        encode_meta(out, meta);
    }
    out.u32(exchange.sources.len() as u32);
    for source in &exchange.sources {
        match &source.from {
            Origin::Own(block) => {
                out.u8(0);
                encode_block(out, block);
            }
            Origin::Worker(worker) => {
                out.u8(1);
                out.u32(worker.0);
            }
        }
        encode_block(out, &source.at);
    }
    let reduction = exchange.reduction.and_then(|reduction| {
        REDUCTIONS.iter().position(|other| *other == reduction).map(|code| code as u8 + 1)
    });
    out.u8(reduction.unwrap_or(0));
    out.u8(u8::from(exchange.joint.is_some()));
    if let Some(joint) = &exchange.joint {
        encode_joint(out, joint);
    }
    out.u32(exchange.line.0);
}

fn encode_joint(out: &mut Writer, joint: &Joint) {
    out.text(&joint.kind);
    out.text(&joint.store);
    out.u32(joint.members.len() as u32);
    for member in &joint.members {
        out.u32(member.worker.0);
        out.text(&member.name);
    }
    let (way, root) = match joint.way {
        Way::AllReduce => (0, 0),
        Way::ReduceScatter => (1, 0),
        Way::AllGather => (2, 0),
        Way::Broadcast { root } => (3, root),
        Way::AllToAll => (4, 0),
    };
    out.u8(way);
    out.u32(root);
}

fn decode_joint(from: &mut Reader) -> Result<Joint> {
    let (kind, store) = (from.text()?, from.text()?);
    let count = from.u32()? as usize;
    let count = from.count(count, 8)?;
    let member =
        |from: &mut Reader| Ok(Member { worker: WorkerId(from.u32()?), name: from.text()? });
    let members = (0..count).map(|_| member(from)).collect::<Result<Vec<_>>>()?;
    let (way, root) = (from.u8()?, from.u32()?);
    let way = match way {
        0 => Way::AllReduce,
        1 => Way::ReduceScatter,
        2 => Way::AllGather,
        3 if (root as usize) < members.len() => Way::Broadcast { root },
        4 => Way::AllToAll,
        code => return Err(bad("a way", code)),
    };
    Ok(Joint { kind, store, members, way })
}

pub fn encode_fabric(out: &mut Writer, fabric: &Fabric) {
    out.text(&fabric.kind);
    out.u8(u8::from(fabric.local));
    out.text(&fabric.store);
    out.text(&fabric.device);
}

pub fn decode_fabric(from: &mut Reader) -> Result<Fabric> {
    let kind = from.text()?;
    let local = match from.u8()? {
        0 => false,
        1 => true,
        code => return Err(bad("a bool", code)),
    };
    Ok(Fabric { kind, local, store: from.text()?, device: from.text()? })
}

pub fn decode_exchange(from: &mut Reader) -> Result<Exchange> {
    let transfer = TransferId(from.u64()?);
    let worker = WorkerId(from.u32()?);
    let code = from.u8()?;
    let collective =
        *Collective::ALL.get(usize::from(code)).ok_or_else(|| bad("a collective", code))?;
    let input = match from.u8()? {
        0 => None,
        1 => Some(TensorId(from.u64()?)),
        code => return Err(bad("a choice", code)),
    };
    let count = from.u32()? as usize;
    let count = from.count(count, 5)?;
    let mut sends = Vec::with_capacity(count);
    for _ in 0..count {
        sends.push((WorkerId(from.u32()?), decode_block(from)?));
    }
    let output = match from.u8()? {
        0 => None,
        1 => Some((TensorId(from.u64()?), decode_meta(from)?)),
        code => return Err(bad("a choice", code)),
    };
    let count = from.u32()? as usize;
    let count = from.count(count, 3)?;
    let mut sources = Vec::with_capacity(count);
    for _ in 0..count {
        let origin = match from.u8()? {
            0 => Origin::Own(decode_block(from)?),
            1 => Origin::Worker(WorkerId(from.u32()?)),
            code => return Err(bad("an origin", code)),
        };
        sources.push(Source { from: origin, at: decode_block(from)? });
    }
    let reduction = match from.u8()? {
        0 => None,
        code => {
            let reduction = REDUCTIONS.get(usize::from(code) - 1);
            Some(*reduction.ok_or_else(|| bad("a reduction", code))?)
        }
    };
    let joint = match from.u8()? {
        0 => None,
        1 => Some(Arc::new(decode_joint(from)?)),
        code => return Err(bad("a choice", code)),
    };
    let line = SourceId(from.u32()?);
    Ok(Exchange {
        transfer,
        worker,
        collective,
        input,
        sends,
        output,
        sources,
        reduction,
        joint,
        line,
    })
}
