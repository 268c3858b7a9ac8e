//! Simplifies sums of zero tensors with slices assigned, as they arise as gradients of slices.
//!
//! The gradient of `x[a]` and `x[b]` is `0 with ga at a` plus `0 with gb at b`. If the slices do
//! not overlap, that is `0 with ga at a and gb at b`; if they cover everything along one axis, it
//! is the concatenation of `ga` and `gb`. Zero is added to that as it was before, as it makes 0 of
//! a negative zero.

use gt_ir::instruction::Attribute;
use gt_ir::operation::ints;
use gt_ir::ops::binary::ADD;
use gt_ir::ops::create::FULL;
use gt_ir::ops::shape::CAT;
use gt_ir::ops::slice::SLICE_ASSIGN;
use gt_ir::sharding::Block;
use gt_ir::trace::{Source, Trace, TraceStep};
use gt_ir::{Meta, Operand, Scalar};
use rustc_hash::FxHashMap;
use smallvec::smallvec;

use super::{Links, TraceRewriter};

/// The most parts that are joined, as each is compared with all others.
const MOST: usize = 64;

/// Zeros with values assigned to blocks that do not overlap.
#[derive(Clone)]
pub struct Joined {
    /// The value that is all zeros.
    zeros: u32,
    /// Each block and its value.
    parts: Vec<(Block, u32)>,
}

/// The sums of such tensors, by the step that makes them. Inner sums of larger ones are unused.
pub fn find(trace: &Trace) -> FxHashMap<usize, Joined> {
    let links = Links::new(trace);
    let mut known: FxHashMap<usize, Joined> = FxHashMap::default();
    let mut sums: FxHashMap<usize, Joined> = FxHashMap::default();
    for (index, step) in trace.steps.iter().enumerate() {
        if let Some(part) = single(&links, step) {
            known.insert(index, part);
        } else if let Some(joined) = sum(&links, step, &known) {
            known.insert(index, joined.clone());
            sums.insert(index, joined);
        }
    }
    sums
}

/// Recognizes zeros with one part.
fn single(links: &Links, step: &TraceStep) -> Option<Joined> {
    if step.operation.id != SLICE_ASSIGN.id || !step.varying.is_empty() {
        return None;
    }
    let [Operand::Tensor(zeros), Operand::Tensor(value)] = step.operands[..] else { return None };
    let (_, full) = links.maker(&step.operands[0])?;
    let is_zero = matches!(full.operands.first(), Some(Operand::Scalar(scalar))
        if scalar.same_bits(Scalar::Int(0)) || scalar.same_bits(Scalar::Float(0.0)));
    let [starts, sizes, steps] = [0, 1, 2].map(|index| ints(&step.attributes, index));
    let part = links.trace.meta(value);
    let part = part.tensor()?;
    let fits = full.operation.id == FULL.id
        && is_zero
        && part.dtype == step.output.dtype
        && part.shape.iter().map(|&length| length as i64).eq(sizes.iter().copied())
        && steps.iter().all(|&step| step == 1);
    let mut block = Block::whole(part.shape);
    for (at, start) in block.starts.iter_mut().zip(starts) {
        *at = *start as usize;
    }
    fits.then(|| Joined { zeros, parts: vec![(block, value)] })
}

/// Recognizes the sum of two.
fn sum(links: &Links, step: &TraceStep, known: &FxHashMap<usize, Joined>) -> Option<Joined> {
    if step.operation.id != ADD.id {
        return None;
    }
    let [left, right] = &step.operands[..] else { return None };
    let [left, right] = [left, right].map(|side| {
        let (index, made) = links.only_maker(side)?;
        known.get(&index).filter(|_| made.output == step.output)
    });
    let (left, right) = (left?, right?);
    let is_free = |(part, _): &(Block, u32)| {
        left.parts.iter().all(|(other, _)| part.intersect(other).is_none())
    };
    if left.parts.len() + right.parts.len() > MOST || !right.parts.iter().all(is_free) {
        return None;
    }
    let parts = left.parts.iter().chain(&right.parts).copied().collect();
    Some(Joined { zeros: left.zeros, parts })
}

pub fn write(writer: &mut TraceRewriter, joined: &Joined, output: Meta) -> u32 {
    let mut parts = joined.parts.clone();
    parts.sort_unstable_by_key(|(block, _)| block.starts);
    let blocks: Vec<Block> = parts.iter().map(|(block, _)| *block).collect();
    let part = |value: u32| Operand::Tensor(writer.values[value as usize]);
    let values: Vec<Source> = parts.iter().map(|(_, value)| part(*value)).collect();
    let whole = if let Some(axis) = Block::stacked_axis(&blocks, output.shape) {
        writer.push(&CAT, &values, smallvec![Attribute::Int(axis as i64)])
    } else {
        let zeros = writer.values[joined.zeros as usize];
        blocks.into_iter().zip(values).fold(zeros, |whole, (block, value)| {
            let operands = [Operand::Tensor(whole), value];
            writer.push(&SLICE_ASSIGN, &operands, block.region())
        })
    };
    if !output.dtype.is_float() && !output.dtype.is_complex() {
        return whole;
    }
    let zero = Operand::Scalar(Scalar::Float(0.0));
    writer.push(&ADD, &[Operand::Tensor(whole), zero], smallvec![])
}
