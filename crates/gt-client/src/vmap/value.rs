//! Values with hidden batch axes.

use std::sync::Arc;

use gt_ir::instruction::Attribute;
use gt_ir::ops::shape::{EXPAND, PERMUTE, RESHAPE};
use gt_ir::{Attributes, Meta, Operand, Operation, Shape};
use smallvec::{SmallVec, smallvec};

use super::Level;
use super::issue::emit;
use crate::error::Result;
use crate::session::StreamValue;
use crate::source;

/// The value behind a hidden axis.
pub(crate) struct BatchedValue {
    pub level: Arc<Level>,
    /// The value with the batch axis of this level in front; axes of outer levels are hidden in it.
    pub of: Arc<StreamValue>,
}

/// The numbers of levels.
pub(crate) type LevelNumbers = SmallVec<[u64; 2]>;

/// Returns the levels at which a value is mapped over, innermost first.
pub(super) fn nest(value: &StreamValue) -> impl Iterator<Item = &Arc<Level>> {
    let mut next = value.batched.as_deref();
    std::iter::from_fn(move || {
        let batched = next?;
        next = batched.of.batched.as_deref();
        Some(&batched.level)
    })
}

/// Returns the numbers of the levels at which a value is mapped over, innermost first.
pub(crate) fn levels(value: &StreamValue) -> LevelNumbers {
    nest(value).map(|level| level.number).collect()
}

/// Hides the first axis, as that of a level inside all of the value's levels.
pub(super) fn hide(of: Arc<StreamValue>, level: &Arc<Level>) -> Arc<StreamValue> {
    let meta = Meta::new(of.meta.dtype, of.meta.shape.without(0));
    Arc::new(of.hidden(meta, BatchedValue { level: Arc::clone(level), of: Arc::clone(&of) }))
}

/// Hides the first axis as that of a level, inside or outside of the value's levels.
pub(super) fn with_level(value: Arc<StreamValue>, level: &Arc<Level>) -> Result<Arc<StreamValue>> {
    match &value.batched {
        Some(inner) if inner.level.number > level.number => {
            let swapped = swapped(&inner.of)?;
            Ok(hide(with_level(swapped, level)?, &inner.level))
        }
        _ => Ok(hide(value, level)),
    }
}

/// Returns the value with the axis of a level in front; a value that is not mapped over is
/// repeated.
pub(super) fn without_level(
    value: &Arc<StreamValue>,
    level: &Arc<Level>,
) -> Result<Arc<StreamValue>> {
    match &value.batched {
        Some(batched) if batched.level.number == level.number => Ok(Arc::clone(&batched.of)),
        Some(inner) if inner.level.number > level.number => {
            let shown = without_level(&inner.of, level)?;
            Ok(hide(swapped(&shown)?, &inner.level))
        }
        _ => repeated(value, level.size),
    }
}

/// Repeats a value along a new first axis.
pub(super) fn repeated(value: &Arc<StreamValue>, size: usize) -> Result<Arc<StreamValue>> {
    let with = |length| -> Result<Attributes> {
        let dims: SmallVec<[usize; 8]> =
            std::iter::once(length).chain(value.meta.shape.iter().copied()).collect();
        Shape::new(&dims)?;
        Ok(smallvec![Attribute::dims(&dims)])
    };
    let one = rearranged(value, &RESHAPE, with(1)?)?;
    rearranged(&one, &EXPAND, with(size)?)
}

/// Returns the value with its first two axes swapped.
fn swapped(value: &Arc<StreamValue>) -> Result<Arc<StreamValue>> {
    let mut order: SmallVec<[i64; 8]> = (0..value.meta.shape.rank() as i64).collect();
    order.swap(0, 1);
    rearranged(value, &PERMUTE, smallvec![Attribute::ints(&order)])
}

fn rearranged(
    value: &Arc<StreamValue>,
    operation: &'static Operation,
    attributes: Attributes,
) -> Result<Arc<StreamValue>> {
    let operands = [Operand::Tensor(Arc::clone(value))];
    let mut results = emit(&value.session, operation, &operands, attributes, source::current())?;
    Ok(results.swap_remove(0))
}
