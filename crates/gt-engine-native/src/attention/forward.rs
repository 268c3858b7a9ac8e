//! The forward pass: the output and the logsumexp, one block of queries at a time.

use std::mem::MaybeUninit;

use super::scores::{ScoreInputs, Scores};
use super::{AttentionFloat, KEYS, QUERIES};
use crate::convolution::MatrixProduct;
use crate::fold::{self, Largest};
use crate::simd::vectorized;
use crate::threads::{SharedPtr, Threads};
use crate::uninit::zeroed;

/// Writes the output (heads, queries, values) and, for each query, the logarithm of the sum of
/// exp(scores). A query that sees no key gets 0 and infinity; the infinity makes its weights 0 when
/// the backward pass recomputes them.
///
/// # Panics
/// `out` or `logsumexp` has another number of elements.
pub fn run<T: AttentionFloat>(
    threads: &mut Threads,
    inputs: &ScoreInputs<T>,
    out: &mut [MaybeUninit<T>],
    logsumexp: &mut [MaybeUninit<T>],
) {
    let lengths = inputs.lengths;
    let (queries, values) = (lengths.queries, lengths.values);
    assert!(logsumexp.len() == lengths.heads * queries && out.len() == logsumexp.len() * values);
    let blocks = queries.div_ceil(QUERIES);
    let (out, logsumexp) =
        (SharedPtr::new(out.as_mut_ptr()), SharedPtr::new(logsumexp.as_mut_ptr()));
    lengths.for_each(threads, lengths.heads * blocks, |piece| {
        let (head, first) = (piece / blocks, piece % blocks * QUERIES);
        let (at, count) = (head * queries + first, QUERIES.min(queries - first));
        // SAFETY: the rows of one block of queries, which only this call accesses.
        let (out, logsumexp) = unsafe {
            let out = std::slice::from_raw_parts_mut(out.get().add(at * values), count * values);
            (out, std::slice::from_raw_parts_mut(logsumexp.get().add(at), count))
        };
        block(&inputs.head(head), first, zeroed(out), logsumexp);
    });
}

/// Computes the rows from query `first` on; `out` is zeros on entry.
fn block<T: AttentionFloat>(
    scores: &Scores<T>,
    first: usize,
    out: &mut [T],
    logsumexp: &mut [MaybeUninit<T>],
) {
    let (count, values) = (logsumexp.len(), scores.lengths.values);
    let end = scores.lengths.seen(first + count);
    let mut weights = vec![T::ZERO; count * KEYS.min(end)];
    let (mut largest, mut sums) = ([T::LOWEST; QUERIES], [T::ZERO; QUERIES]);
    for start in (0..end).step_by(KEYS) {
        let keys = KEYS.min(end - start);
        let weights = &mut weights[..count * keys];
        scores.write(first..first + count, start..start + keys, weights);
        for (query, row) in weights.chunks_exact_mut(keys).enumerate() {
            let before = largest[query];
            let now = before.larger(fold::row::<T, Largest>(row));
            exponentials(row, if now == T::LOWEST { T::ZERO } else { now });
            let factor = if before == now { T::ONE } else { before.minus(now).exp() };
            sums[query] = sums[query].times(factor).plus(T::sum(row));
            largest[query] = now;
            if start > 0 && before != now {
                scale(&mut out[query * values..][..values], factor);
            }
        }
        let product = MatrixProduct {
            rows: count,
            depth: keys,
            columns: values,
            a: (weights.as_ptr(), [keys, 1]),
            b: (scores.value.rows(start, keys), scores.value.steps),
            out: (out.as_mut_ptr(), [values, 1]),
            adds: start > 0,
        };
        // SAFETY: the weights, the rows of values and the rows of the output are in bounds and
        // initialized.
        unsafe { product.run() };
    }
    for (query, to) in logsumexp.iter_mut().enumerate() {
        let sum = sums[query];
        if sum == T::ZERO {
            out[query * values..][..values].fill(T::ZERO);
            to.write(T::HIGHEST);
        } else {
            scale(&mut out[query * values..][..values], T::ONE.divide(sum));
            to.write(largest[query].plus(sum.log()));
        }
    }
}

fn exponentials<T: AttentionFloat>(row: &mut [T], largest: T) {
    vectorized(
        #[inline(always)]
        || row.iter_mut().for_each(|x| *x = x.minus(largest).exp()),
    );
}

fn scale<T: AttentionFloat>(row: &mut [T], factor: T) {
    vectorized(
        #[inline(always)]
        || row.iter_mut().for_each(|x| *x = x.times(factor)),
    );
}
