//! vmap: computing a function for a whole batch at once.
//!
//! While a `vmap` runs there is a [`Level`] for it, and nested ones have a level each. A value that
//! is mapped over at a level hides its batch axis: user code, the tape and gradient rules see the
//! shape of one of the batch. [`issue`] brings the axis back, by the operations' batching rules
//! (`gt_ir::batching`), level by level from the innermost on.
//!
//! - [`value`]: values with hidden axes; [`boundary`]: tensors that enter and leave a `vmap`.
//! - [`random`]: random numbers, that differ within the batch or do not.

mod boundary;
mod issue;
mod random;
mod value;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use gt_ir::TensorId;

pub use random::Randomness;

pub(crate) use boundary::{levels_of, without_ended};
pub(crate) use issue::issue;
pub(crate) use value::{BatchedValue, LevelNumbers, levels};

use crate::error::{ClientError, Result};
use crate::session::Session;
use crate::tensor::Tensor;

thread_local! {
    /// The levels of this thread, from the outermost on.
    static LEVELS: RefCell<Vec<Arc<Level>>> = const { RefCell::new(Vec::new()) };
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// One `vmap` that runs, or has run.
pub struct Level {
    /// Inner levels have larger numbers.
    number: u64,
    size: usize,
    randomness: Randomness,
    is_over: AtomicBool,
    session: Session,
    /// Tensors of the session with a smaller id were there before.
    first: TensorId,
}

impl Level {
    /// Begins a level of this thread.
    pub fn enter(session: &Session, size: usize, randomness: Randomness) -> Arc<Level> {
        let level = Arc::new(Level {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            size,
            randomness,
            is_over: AtomicBool::new(false),
            first: session.next_tensor(),
            session: session.clone(),
        });
        LEVELS.with_borrow_mut(|levels| levels.push(Arc::clone(&level)));
        level
    }

    /// Ends it, and those within it.
    pub fn exit(&self) {
        LEVELS.with_borrow_mut(|levels| {
            while let Some(last) = levels.last()
                && last.number >= self.number
            {
                last.is_over.store(true, Ordering::Relaxed);
                levels.pop();
            }
        });
    }
}

/// Whether this thread is inside a `vmap`.
pub fn is_active() -> bool {
    LEVELS.with_borrow(|levels| !levels.is_empty())
}

fn active() -> Vec<Arc<Level>> {
    LEVELS.with_borrow(Clone::clone)
}

impl Tensor {
    /// Whether it is mapped over, so that it has no values of its own.
    pub fn is_batched(&self) -> bool {
        self.value().batched.is_some()
    }

    /// The values of the whole batch without history, with the axes of all levels in front, from the
    /// outermost on: for checks of what a result is, and not for the result itself.
    pub fn whole(&self) -> Tensor {
        let mut value = self.value();
        while let Some(batched) = &value.batched {
            value = Arc::clone(&batched.of);
        }
        Tensor::from_parts(value, None)
    }

    /// Whether it is mapped over at a level.
    pub fn is_mapped_at(&self, level: &Level) -> bool {
        levels(&self.value()).contains(&level.number)
    }

    /// An error where `what` is asked of a tensor that is mapped over.
    pub fn check_has_values(&self, what: &str) -> Result<()> {
        if !self.is_batched() {
            return Ok(());
        }
        Err(ClientError::usage(format!(
            "vmap: It looks like you're calling {what} on a Tensor. We don't support vmap over calling {what} on a Tensor, please try to rewrite what you're doing with other operations.\n  hint: inside vmap a tensor stands for all of the batch"
        )))
    }

    /// An error where the shape of a result would depend on a tensor that is mapped over.
    pub(crate) fn check_countable(&self) -> Result<()> {
        if !self.is_batched() {
            return Ok(());
        }
        Err(ClientError::usage(
            "vmap: We do not support batching operators that can output dynamic shape. Attempting to vmap over nonzero or indexing with a boolean mask\n  hint: gt.where(mask, a, b) keeps the shape",
        ))
    }

    /// A tensor from before a `vmap` cannot take values that are mapped over by it.
    pub(crate) fn check_takes(&self, other: &Tensor, operation: &str) -> Result<()> {
        let other = other.value();
        if other.batched.is_none() {
            return Ok(());
        }
        let own = self.current_value();
        let own_levels = levels(&own);
        let outgrown = value::nest(&other).any(|level| {
            let is_older = own.session.is(&level.session) && own.is_older_than(level.first);
            is_older && !own_levels.contains(&level.number)
        });
        if !outgrown {
            return Ok(());
        }
        Err(ClientError::usage(format!(
            "vmap: {operation}: a change in place is not possible because another tensor is being vmapped over, but this one is not, and was made outside\n  hint: use the form that gives a new tensor"
        )))
    }
}
