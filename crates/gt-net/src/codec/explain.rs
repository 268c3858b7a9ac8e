//! The records of explanations.

use gt_ir::SourceId;
use gt_ir::exchange::Collective;
use gt_ir::explain::{Explanation, PlacedTensor, PlannedMove, PlannedStep};

use super::exchange::{decode_meta, encode_meta};
use crate::wire::{DecodeError, Reader, Writer};

type Result<T> = std::result::Result<T, DecodeError>;

/// Reads a list of records of at least `size` bytes each.
fn list<T>(
    from: &mut Reader,
    size: usize,
    item: impl Fn(&mut Reader) -> Result<T>,
) -> Result<Vec<T>> {
    let count = from.u32()? as usize;
    let count = from.count(count, size)?;
    (0..count).map(|_| item(from)).collect()
}

pub fn encode_placed(out: &mut Writer, placed: &PlacedTensor) {
    encode_meta(out, &placed.meta);
    out.text(&placed.placement);
    out.u32(placed.workers.len() as u32);
    placed.workers.iter().for_each(|&worker| out.u32(worker));
}

pub fn decode_placed(from: &mut Reader) -> Result<PlacedTensor> {
    Ok(PlacedTensor {
        meta: decode_meta(from)?,
        placement: from.text()?,
        workers: list(from, 4, |from| from.u32())?,
    })
}

fn encode_move(out: &mut Writer, moved: &PlannedMove) {
    let collective = Collective::ALL.iter().position(|other| *other == moved.collective);
    out.u8(collective.unwrap_or(0) as u8);
    out.u64(moved.bytes);
    encode_placed(out, &moved.from);
    encode_placed(out, &moved.to);
    out.text(&moved.reason);
}

fn decode_move(from: &mut Reader) -> Result<PlannedMove> {
    let code = from.u8()?;
    let collective = Collective::ALL.get(usize::from(code)).copied();
    Ok(PlannedMove {
        collective: collective
            .ok_or(DecodeError::BadCode { what: "a collective", code: u64::from(code) })?,
        bytes: from.u64()?,
        from: decode_placed(from)?,
        to: decode_placed(from)?,
        reason: from.text()?,
    })
}

pub fn encode_explanation(out: &mut Writer, explanation: &Explanation) {
    out.u32(explanation.steps.len() as u32);
    for step in &explanation.steps {
        out.text(&step.operation);
        out.u32(step.line.0);
        out.u32(step.operands.len() as u32);
        step.operands.iter().for_each(|operand| encode_placed(out, operand));
        encode_placed(out, &step.output);
        out.u32(step.moves.len() as u32);
        step.moves.iter().for_each(|moved| encode_move(out, moved));
    }
    out.u32(explanation.memory.len() as u32);
    for (worker, bytes) in &explanation.memory {
        out.u32(*worker);
        out.u64(*bytes);
    }
}

pub fn decode_explanation(from: &mut Reader) -> Result<Explanation> {
    let step = |from: &mut Reader| {
        Ok(PlannedStep {
            operation: from.text()?,
            line: SourceId(from.u32()?),
            operands: list(from, 10, decode_placed)?,
            output: decode_placed(from)?,
            moves: list(from, 30, decode_move)?,
        })
    };
    Ok(Explanation {
        steps: list(from, 26, step)?,
        memory: list(from, 12, |from| Ok((from.u32()?, from.u64()?)))?,
    })
}
