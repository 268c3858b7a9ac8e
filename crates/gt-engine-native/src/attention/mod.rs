//! Attention in blocks: FlashAttention (Dao et al., 2022). Scores are computed for one block of
//! queries and one block of keys at a time; the full matrix of scores is never stored.
//!
//! - [`operation`]: converts tensors to matrices in memory, described by [`heads`].
//! - [`scores`]: a block of scores.
//! - [`forward`]: iterates over blocks of keys, with a running maximum and a running sum of
//!   exponentials for each query.
//! - [`backward`]: recomputes the weights, and computes the gradients.
//!
//! The pieces of work and the order in which they are summed depend only on the shapes, so that
//! results do not depend on the number of threads.

mod backward;
mod forward;
mod heads;
mod operation;
mod scores;
#[cfg(test)]
mod tests;

use crate::convolution::ConvolutionFloat;
use crate::fold::{Fold, Sum};
use crate::math::Float;
use crate::threads::Threads;

pub use operation::{attention, attention_backward};

/// Queries and keys in a block of scores, which fits in the cache.
const QUERIES: usize = 64;
const KEYS: usize = 128;

/// Attention with fewer multiplications than this runs on one thread.
const PARALLEL: usize = 1 << 18;

/// The float types that attention is computed in.
trait AttentionFloat: Float + ConvolutionFloat {
    /// Returns the sum of a row.
    fn sum(row: &[Self]) -> Self;
}

impl<T: Float + ConvolutionFloat> AttentionFloat for T
where
    Sum: Fold<T>,
{
    fn sum(row: &[T]) -> T {
        Sum::finish(crate::fold::row::<T, Sum>(row), row.len())
    }
}

/// The lengths of one head's matrices.
#[derive(Clone, Copy)]
struct AttentionLengths {
    heads: usize,
    queries: usize,
    keys: usize,
    /// Elements of a query and of a key.
    width: usize,
    /// Elements of a value.
    values: usize,
    /// Whether query i sees only keys 0..=i.
    is_causal: bool,
}

impl AttentionLengths {
    /// Returns the number of keys that the queries before `end` see.
    fn seen(&self, end: usize) -> usize {
        if self.is_causal { self.keys.min(end) } else { self.keys }
    }

    /// Calls `piece` with each number below `pieces`, on several threads if the work is large
    /// enough.
    fn for_each(&self, threads: &mut Threads, pieces: usize, piece: impl Fn(usize) + Sync) {
        let each = [self.heads, self.queries, self.keys, self.width + self.values];
        if each.iter().fold(1, |all: usize, n| all.saturating_mul(*n)) < PARALLEL {
            (0..pieces).for_each(piece);
        } else {
            threads.for_each(pieces, piece);
        }
    }
}
