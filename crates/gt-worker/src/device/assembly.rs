//! The output of an exchange, from the parts that have arrived.

use gt_ir::instruction::{Attribute, Operands};
use gt_ir::ops::{binary, create, shape, slice};
use gt_ir::sharding::{Block, Reduction};
use gt_ir::{DType, Exchange, Meta, Operand, Operation, Scalar};
use smallvec::smallvec;

use crate::engine::{Engine, EngineError};

/// Assembles an exchange's output: reduced, concatenated, or assigned block by block.
pub fn assemble<E: Engine>(
    engine: &mut E,
    exchange: &Exchange,
    parts: Vec<E::Tensor>,
    meta: Meta,
) -> Result<E::Tensor, EngineError> {
    let mut parts = parts.into_iter();
    if let Some(reduction) = exchange.reduction.filter(|_| !exchange.parts.receives.is_empty()) {
        let operation = combining(reduction, meta.dtype);
        let mut total = parts.next().ok_or_else(nothing)?;
        for part in parts {
            let operands: Operands<E::Tensor> =
                smallvec![Operand::Tensor(total), Operand::Tensor(part)];
            total = engine.run(operation, operands, &smallvec![], meta)?;
        }
        return Ok(total);
    }
    let receives = &exchange.parts.receives;
    if let [only] = receives.as_slice()
        && only.at.shape == meta.shape
    {
        return parts.next().ok_or_else(nothing);
    }
    let blocks: Vec<Block> = receives.iter().map(|received| received.at).collect();
    assemble_blocks(engine, &blocks, parts.collect(), meta)
}

/// Assembles a tensor from blocks that are placed side by side.
pub fn assemble_blocks<E: Engine>(
    engine: &mut E,
    blocks: &[Block],
    parts: Vec<E::Tensor>,
    meta: Meta,
) -> Result<E::Tensor, EngineError> {
    let parts = parts.into_iter();
    if let [only] = blocks
        && only.shape == meta.shape
    {
        return parts.into_iter().next().ok_or_else(nothing);
    }
    if let Some(axis) = Block::stacked_axis(blocks, meta.shape) {
        let operands: Operands<E::Tensor> = parts.map(Operand::Tensor).collect();
        return engine.run(&shape::CAT, operands, &smallvec![Attribute::Int(axis as i64)], meta);
    }
    let attributes = smallvec![Attribute::dims(&meta.shape), Attribute::DType(meta.dtype)];
    let zero: Operands<E::Tensor> = smallvec![Operand::Scalar(Scalar::Int(0))];
    let mut whole = engine.run(&create::FULL, zero, &attributes, meta)?;
    for (block, part) in blocks.iter().zip(parts) {
        let operands: Operands<E::Tensor> =
            smallvec![Operand::Tensor(whole), Operand::Tensor(part)];
        whole = engine.run(&slice::SLICE_ASSIGN, operands, &block.region(), meta)?;
    }
    Ok(whole)
}

fn nothing() -> EngineError {
    EngineError::Other("an exchange that gets nothing".into())
}

/// The operation that combines two parts. On bools, max is `or` and min is `and`.
pub fn combining(reduction: Reduction, dtype: DType) -> &'static Operation {
    match (reduction, dtype) {
        (Reduction::Max, DType::Bool) => &binary::BITWISE_OR,
        (Reduction::Min, DType::Bool) => &binary::BITWISE_AND,
        (Reduction::Sum, _) => &binary::ADD,
        (Reduction::Prod, _) => &binary::MUL,
        (Reduction::Max, _) => &binary::MAXIMUM,
        (Reduction::Min, _) => &binary::MINIMUM,
    }
}
