//! Attention in blocks: FlashAttention (Dao et al., 2022). Scores are computed for a block of queries
//! and a block of keys at a time, and never kept.
//!
//! - [`operation`]: from tensors to matrices in memory, described by [`heads`].
//! - [`scores`]: a block of scores.
//! - [`forward`]: blocks of keys one after another, with the largest score and the sum of exponentials
//!   so far for each query. [`backward`]: the weights again, and the gradients.
//!
//! How work is cut into pieces, and the order in which they are summed, depend on the shapes alone,
//! so that results do not depend on the number of threads.

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

/// Queries and keys in a block of scores, which stays in the cache.
const QUERIES: usize = 64;
const KEYS: usize = 128;

/// Attention of fewer multiplications stays on one thread.
const PARALLEL: usize = 1 << 18;

/// The floats that attention is computed in.
trait AttentionFloat: Float + ConvolutionFloat {
    /// The sum of a row.
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
    /// Of queries and keys.
    width: usize,
    /// Of values.
    values: usize,
    /// Whether query i sees keys up to i alone.
    is_causal: bool,
}

impl AttentionLengths {
    /// How many keys the queries before `end` see.
    fn seen(&self, end: usize) -> usize {
        if self.is_causal { self.keys.min(end) } else { self.keys }
    }

    /// Calls `piece` once for each number below `pieces`, on several threads where there is much to do.
    fn for_each(&self, threads: &mut Threads, pieces: usize, piece: impl Fn(usize) + Sync) {
        let each = [self.heads, self.queries, self.keys, self.width + self.values];
        if each.iter().fold(1, |all: usize, n| all.saturating_mul(*n)) < PARALLEL {
            (0..pieces).for_each(piece);
        } else {
            threads.for_each(pieces, piece);
        }
    }
}
