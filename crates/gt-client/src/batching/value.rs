//! Values with hidden batch axes.

use std::sync::Arc;

use gt_ir::Meta;
use smallvec::SmallVec;

use crate::context::level::Level;
use crate::session::{BatchedValue, StreamValue};

/// The numbers of levels.
pub(crate) type LevelNumbers = SmallVec<[u64; 2]>;

/// Returns the levels at which a value is mapped over, innermost first.
pub(crate) fn nest(value: &StreamValue) -> impl Iterator<Item = &Arc<Level>> {
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
pub(crate) fn hide(of: Arc<StreamValue>, level: &Arc<Level>) -> Arc<StreamValue> {
    let meta = Meta::new(of.meta.dtype, of.meta.shape.without(0));
    Arc::new(of.hidden(meta, BatchedValue { level: Arc::clone(level), of: Arc::clone(&of) }))
}

/// Returns the levels of each tensor, if any of `results` is mapped over.
pub(crate) fn levels_of<'a>(
    tensors: impl Iterator<Item = Option<&'a Arc<StreamValue>>>,
    results: &[Arc<StreamValue>],
) -> Option<Box<[LevelNumbers]>> {
    let is_mapped = results.iter().any(|result| result.batched.is_some());
    is_mapped.then(|| {
        tensors.map(|value| value.map(|value| levels(value)).unwrap_or_default()).collect()
    })
}
