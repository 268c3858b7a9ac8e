//! vmap: maps a function over a batch axis.
//!
//! Each running `vmap` has a [`Level`]; levels nest. A value that is mapped over at a level hides
//! its batch axis: user code, the tape and gradient rules see the shape of one sample. [`issue`]
//! restores the axis by the operations' batching rules (`gt_ir::batching`), level by level from the
//! innermost.
//!
//! - [`value`]: values with hidden axes; [`boundary`]: tensors that enter and leave a `vmap`.
//! - [`random`]: random numbers, equal or different within the batch.

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
    /// The levels of this thread, outermost first.
    static LEVELS: RefCell<Vec<Arc<Level>>> = const { RefCell::new(Vec::new()) };
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A `vmap` that runs, or has run.
pub struct Level {
    /// Inner levels have larger numbers.
    number: u64,
    size: usize,
    randomness: Randomness,
    is_over: AtomicBool,
    session: Session,
    /// Tensors of the session with a smaller id are older than the level.
    first: TensorId,
}

impl Level {
    /// Starts a level on this thread.
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

    /// Ends the level, and those within it.
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

/// Returns whether this thread is inside a `vmap`.
pub fn is_active() -> bool {
    LEVELS.with_borrow(|levels| !levels.is_empty())
}

fn active() -> Vec<Arc<Level>> {
    LEVELS.with_borrow(Clone::clone)
}

impl Tensor {
    /// Returns whether it is mapped over, so that it stands for a batch of values.
    pub fn is_batched(&self) -> bool {
        self.value().batched.is_some()
    }

    /// Returns the values of the whole batch without history, with the axes of all levels in front,
    /// outermost first. For checks of results only.
    pub fn whole(&self) -> Tensor {
        let mut value = self.value();
        while let Some(batched) = &value.batched {
            value = Arc::clone(&batched.of);
        }
        Tensor::from_parts(value, None)
    }

    /// Returns whether it is mapped over at a level.
    pub fn is_mapped_at(&self, level: &Level) -> bool {
        levels(&self.value()).contains(&level.number)
    }

    /// Returns an error if the tensor is mapped over; `what` needs its values.
    pub fn check_has_values(&self, what: &str) -> Result<()> {
        if !self.is_batched() {
            return Ok(());
        }
        Err(ClientError::usage(format!(
            "vmap: It looks like you're calling {what} on a Tensor. We don't support vmap over calling {what} on a Tensor, please try to rewrite what you're doing with other operations.\n  hint: inside vmap a tensor stands for all of the batch"
        )))
    }

    /// Returns an error if the tensor is mapped over: a result's shape cannot depend on it.
    pub(crate) fn check_countable(&self) -> Result<()> {
        if !self.is_batched() {
            return Ok(());
        }
        Err(ClientError::usage(
            "vmap: We do not support batching operators that can output dynamic shape. Attempting to vmap over nonzero or indexing with a boolean mask\n  hint: gt.where(mask, a, b) keeps the shape",
        ))
    }

    /// Returns an error if `other` is mapped over by a `vmap` that this tensor is older than.
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
            "vmap: {operation}: a change in place is not possible because another tensor is being vmapped over, but this one is not, and was made outside\n  hint: use the out-of-place operation"
        )))
    }
}
