//! Adds the axis of a level to a value, and takes it out.

use std::sync::Arc;

use gt_ir::instruction::Attribute;
use gt_ir::ops::shape::{EXPAND, PERMUTE, RESHAPE};
use gt_ir::{Attributes, Operand, Operation, Shape};
use smallvec::{SmallVec, smallvec};

use super::issue::emit;
use super::value::hide;
use crate::context::CallSite;
use crate::context::level::Level;
use crate::error::Result;
use crate::session::StreamValue;

/// Hides the first axis as that of a level, inside or outside of the value's levels.
pub(crate) fn with_level(
    site: CallSite,
    value: Arc<StreamValue>,
    level: &Arc<Level>,
) -> Result<Arc<StreamValue>> {
    match &value.batched {
        Some(inner) if inner.level.number > level.number => {
            let swapped = swapped(site, &inner.of)?;
            Ok(hide(with_level(site, swapped, level)?, &inner.level))
        }
        _ => Ok(hide(value, level)),
    }
}

/// Returns the value with the axis of a level in front; a value that is not mapped over is
/// repeated.
pub(crate) fn without_level(
    site: CallSite,
    value: &Arc<StreamValue>,
    level: &Arc<Level>,
) -> Result<Arc<StreamValue>> {
    match &value.batched {
        Some(batched) if batched.level.number == level.number => Ok(Arc::clone(&batched.of)),
        Some(inner) if inner.level.number > level.number => {
            let shown = without_level(site, &inner.of, level)?;
            Ok(hide(swapped(site, &shown)?, &inner.level))
        }
        _ => repeated(site, value, level.size),
    }
}

/// Repeats a value along a new first axis.
pub(super) fn repeated(
    site: CallSite,
    value: &Arc<StreamValue>,
    size: usize,
) -> Result<Arc<StreamValue>> {
    let with = |length| -> Result<Attributes> {
        let dims: SmallVec<[usize; 8]> =
            std::iter::once(length).chain(value.meta.shape.iter().copied()).collect();
        Shape::new(&dims)?;
        Ok(smallvec![Attribute::dims(&dims)])
    };
    let one = rearranged(site, value, &RESHAPE, with(1)?)?;
    rearranged(site, &one, &EXPAND, with(size)?)
}

/// Returns the value with its first two axes swapped.
fn swapped(site: CallSite, value: &Arc<StreamValue>) -> Result<Arc<StreamValue>> {
    let mut order: SmallVec<[i64; 8]> = (0..value.meta.shape.rank() as i64).collect();
    order.swap(0, 1);
    rearranged(site, value, &PERMUTE, smallvec![Attribute::ints(&order)])
}

fn rearranged(
    site: CallSite,
    value: &Arc<StreamValue>,
    operation: &'static Operation,
    attributes: Attributes,
) -> Result<Arc<StreamValue>> {
    let operands = [Operand::Tensor(Arc::clone(value))];
    let mut results = emit(site, &value.session, operation, &operands, attributes)?;
    Ok(results.swap_remove(0))
}
