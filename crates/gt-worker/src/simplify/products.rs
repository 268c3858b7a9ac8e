//! Rewrites batched products summed over all batch axes.
//!
//! The sum over `b` of `a[b].T @ c[b]` is `A.T @ C`, where `A` and `C` stack the rows of all `b`.
//! The batched product is never materialized, and products of long matrices are faster.

use gt_ir::instruction::Attribute;
use gt_ir::operation::ints;
use gt_ir::ops::matmul::MATMUL;
use gt_ir::ops::reduce::SUM;
use gt_ir::ops::shape::{PERMUTE, RESHAPE};
use gt_ir::{Meta, Operand};
use rustc_hash::FxHashMap;
use smallvec::smallvec;

use super::{Links, PlanWriter};
use crate::plan::{Plan, Step};

/// Such a sum: `a` and `c` are values whose leading axes are the batch.
pub struct Summed {
    a: u32,
    c: u32,
    /// Whether the product is transposed before it is summed.
    is_turned: bool,
}

/// The sums, by the step that makes them.
pub fn find(plan: &Plan) -> FxHashMap<usize, Summed> {
    let links = Links::new(plan);
    let steps = plan.steps.iter().enumerate();
    steps.filter_map(|(index, step)| Some((index, summed(&links, step)?))).collect()
}

fn summed(links: &Links, step: &Step) -> Option<Summed> {
    if step.operation.id != SUM.id {
        return None;
    }
    let (_, mut product) = links.only_maker(&step.operands[0])?;
    let is_turned = turns(product);
    if is_turned {
        product = links.only_maker(&product.operands[0])?.1;
    }
    let Meta { shape, dtype } = product.output;
    let batch = shape.rank().checked_sub(2).filter(|&batch| batch > 0)?;
    let sums_batch = ints(&step.attributes, 0).iter().copied().eq(0..batch as i64);
    let is_alike = |value: u32| {
        let meta = links.plan.meta(value);
        meta.tensor().is_some_and(|meta| {
            meta.dtype == dtype
                && meta.shape.rank() == shape.rank()
                && meta.shape[..batch] == shape[..batch]
                && meta.shape.numel() > 0
        })
    };
    if product.operation.id != MATMUL.id || !sums_batch || step.output.dtype != dtype {
        return None;
    }
    let [turned, Operand::Tensor(c)] = &product.operands[..] else { return None };
    let (_, turn) = links.maker(turned).filter(|(_, turn)| turns(turn))?;
    let a = *turn.operands[0].tensor()?;
    (is_alike(a) && is_alike(*c)).then_some(Summed { a, c: *c, is_turned })
}

/// Whether a step transposes the last two axes.
fn turns(step: &Step) -> bool {
    let rank = step.output.shape.rank();
    step.operation.id == PERMUTE.id && rank > 2 && {
        let last = rank as i64;
        let turned = (0..last - 2).chain([last - 1, last - 2]);
        ints(&step.attributes, 0).iter().copied().eq(turned)
    }
}

pub fn write(writer: &mut PlanWriter, summed: &Summed, output: Meta) -> u32 {
    let [a, c] = [summed.a, summed.c].map(|value| {
        let value = writer.values[value as usize];
        let shape = writer.plan.meta(value).tensor().expect("it was a tensor").shape;
        let columns = shape[shape.rank() - 1];
        let rows = shape.numel() / columns;
        writer.push(&RESHAPE, &[value], smallvec![Attribute::dims(&[rows, columns])])
    });
    let turn = || smallvec![Attribute::ints(&[1, 0])];
    let turned = writer.push(&PERMUTE, &[a], turn());
    let mut product = writer.push(&MATMUL, &[turned, c], smallvec![]);
    if summed.is_turned {
        product = writer.push(&PERMUTE, &[product], turn());
    }
    if output.shape.rank() > 2 {
        product = writer.push(&RESHAPE, &[product], smallvec![Attribute::dims(&output.shape)]);
    }
    product
}
