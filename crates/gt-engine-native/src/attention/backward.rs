//! The backward pass: the gradients for queries, keys and values, one block of keys at a time over
//! all queries that see any of them.

use std::mem::MaybeUninit;
use std::ops::Range;

use gt_worker::EngineError;

use super::heads::{HeadMatrix, Heads};
use super::scores::{ScoreInputs, Scores, transposed};
use super::{AttentionFloat, AttentionLengths, KEYS, QUERIES};
use crate::buffer::Buffer;
use crate::convolution::MatrixProduct;
use crate::simd::vectorized;
use crate::threads::{SharedPtr, Threads};
use crate::uninit::zeroed;

/// If there are fewer heads than `PIECES`, the keys of each head are split into groups, so that the
/// threads have about `PIECES` pieces to share. Each group needs its own copy of the queries'
/// gradient, so there are at most `MOST_GROUPS`.
const PIECES: usize = 16;
const MOST_GROUPS: usize = 8;

/// The output's gradient and the results of the forward pass.
pub struct ForwardResults<'a, T> {
    pub grad: Heads<'a, T>,
    pub output: Heads<'a, T>,
    pub logsumexp: &'a [T],
}

/// The memory for the gradients, in row-major order.
pub struct AttentionGradients<'a, T> {
    pub query: &'a mut [MaybeUninit<T>],
    pub key: &'a mut [MaybeUninit<T>],
    pub value: &'a mut [MaybeUninit<T>],
}

/// Writes all gradients.
///
/// # Errors
/// There is not enough memory for the groups' gradients of the queries.
///
/// # Panics
/// The length of a slice does not match the shapes.
pub fn run<T: AttentionFloat>(
    threads: &mut Threads,
    inputs: &ScoreInputs<T>,
    given: &ForwardResults<T>,
    out: AttentionGradients<T>,
) -> Result<(), EngineError> {
    let lengths = inputs.lengths;
    let AttentionLengths { heads, queries, keys, width, values, .. } = lengths;
    assert!(given.logsumexp.len() == heads * queries && out.query.len() == heads * queries * width);
    assert!(out.key.len() == heads * keys * width && out.value.len() == heads * keys * values);
    let blocks = keys.div_ceil(KEYS);
    let groups = PIECES.div_ceil(heads.max(1)).min(MOST_GROUPS).min(blocks).max(1);
    let deltas = deltas(threads, lengths, given);
    let size = queries * width;
    let apart = if groups > 1 { heads * groups * size } else { 0 };
    let apart = Buffer::new(apart * size_of::<T>())?;
    let parts = if groups > 1 { apart.data().cast() } else { out.query.as_mut_ptr() };
    let parts = SharedPtr::new(parts.cast::<MaybeUninit<T>>());
    let (key, value) =
        (SharedPtr::new(out.key.as_mut_ptr()), SharedPtr::new(out.value.as_mut_ptr()));
    lengths.for_each(threads, heads * groups, |piece| {
        let (head, group) = (piece / groups, piece % groups);
        let range = |group: usize| (group * blocks / groups * KEYS).min(keys);
        let own = range(group)..if group + 1 < groups { range(group + 1) } else { keys };
        let (at, count) = (head * keys + own.start, own.len());
        // SAFETY: a partial sum of the gradients of queries, and a range of keys of the other
        // gradients; only this piece accesses either.
        let (query, key, value) = unsafe {
            (
                std::slice::from_raw_parts_mut(parts.get().add(piece * size), size),
                std::slice::from_raw_parts_mut(key.get().add(at * width), count * width),
                std::slice::from_raw_parts_mut(value.get().add(at * values), count * values),
            )
        };
        let rows = head * queries..(head + 1) * queries;
        let part = BackwardPart {
            scores: inputs.head(head),
            grad: given.grad.head(head),
            logsumexp: &given.logsumexp[rows.clone()],
            deltas: &deltas[rows],
            keys: own,
        };
        part.run(zeroed(query), zeroed(key), zeroed(value));
    });
    if groups > 1 {
        // SAFETY: the pieces have written every element.
        let parts =
            unsafe { std::slice::from_raw_parts(apart.data().cast::<T>(), heads * groups * size) };
        sum(threads, parts, groups, size, out.query);
    }
    Ok(())
}

/// Returns the sum of gradient times output for each query.
fn deltas<T: AttentionFloat>(
    threads: &mut Threads,
    lengths: AttentionLengths,
    given: &ForwardResults<T>,
) -> Vec<T> {
    let mut deltas = vec![T::ZERO; lengths.heads * lengths.queries];
    if lengths.values == 0 {
        return deltas;
    }
    threads.for_each_part(&mut deltas, lengths.queries.max(1), |head, deltas| {
        let (grad, output) = (given.grad.head(head), given.output.head(head));
        let mut products = vec![T::ZERO; lengths.values];
        for (query, delta) in deltas.iter_mut().enumerate() {
            let both = grad.row(query).iter().zip(output.row(query));
            products.iter_mut().zip(both).for_each(|(to, (a, b))| *to = a.times(*b));
            *delta = T::sum(&products);
        }
    });
    deltas
}

/// Adds up the partial gradients of the groups for each head.
fn sum<T: AttentionFloat>(
    threads: &mut Threads,
    parts: &[T],
    groups: usize,
    size: usize,
    out: &mut [MaybeUninit<T>],
) {
    if size == 0 {
        return;
    }
    threads.for_each_part(out, size, |head, out| {
        let mut parts = parts[head * groups * size..][..groups * size].chunks_exact(size);
        for (to, x) in out.iter_mut().zip(parts.next().into_iter().flatten()) {
            to.write(*x);
        }
        // SAFETY: the first part has the same length, so every element has been written.
        let out = unsafe { &mut *(std::ptr::from_mut(out) as *mut [T]) };
        for part in parts {
            out.iter_mut().zip(part).for_each(|(to, x)| *to = to.plus(*x));
        }
    });
}

/// The backward pass for a range of keys of one head.
struct BackwardPart<'a, T> {
    scores: Scores<'a, T>,
    grad: HeadMatrix<'a, T>,
    logsumexp: &'a [T],
    deltas: &'a [T],
    keys: Range<usize>,
}

impl<T: AttentionFloat> BackwardPart<'_, T> {
    /// Adds to the gradients of all queries, and to those of the keys and values in the range.
    fn run(&self, query: &mut [T], key: &mut [T], value: &mut [T]) {
        let AttentionLengths { queries, width, values, is_causal, .. } = self.scores.lengths;
        let size = QUERIES.min(queries) * KEYS;
        let (mut weights, mut grads) = (vec![T::ZERO; size], vec![T::ZERO; size]);
        for first in self.keys.clone().step_by(KEYS) {
            let (start, keys) = (first - self.keys.start, first..self.keys.end.min(first + KEYS));
            // Under a causal mask, a query before the first of these keys sees none of them.
            let unseen = if is_causal { keys.start / QUERIES * QUERIES } else { 0 };
            for first in (unseen..queries).step_by(QUERIES) {
                let rows = first..queries.min(first + QUERIES);
                let size = rows.len() * keys.len();
                let (weights, grads) = (&mut weights[..size], &mut grads[..size]);
                self.weigh(rows.clone(), keys.clone(), weights, grads);
                let to = [
                    &mut query[first * width..][..rows.len() * width],
                    &mut key[start * width..][..keys.len() * width],
                    &mut value[start * values..][..keys.len() * values],
                ];
                self.add(rows, keys.clone(), weights, grads, to);
            }
        }
    }

    /// Writes a block's weights and the gradients of its scores.
    fn weigh(&self, queries: Range<usize>, keys: Range<usize>, weights: &mut [T], grads: &mut [T]) {
        let (scores, columns) = (&self.scores, keys.len());
        scores.write(queries.clone(), keys.clone(), weights);
        let product = MatrixProduct {
            rows: queries.len(),
            depth: scores.lengths.values,
            columns,
            a: (self.grad.rows(queries.start, queries.len()), self.grad.steps),
            b: (scores.value.rows(keys.start, columns), transposed(scores.value.steps)),
            out: (grads.as_mut_ptr(), [columns, 1]),
            adds: false,
        };
        // SAFETY: the rows of gradients and values are in bounds; `grads` has room for the product.
        unsafe { product.run() };
        let rows = weights.chunks_exact_mut(columns).zip(grads.chunks_exact_mut(columns));
        for (query, (weights, grads)) in queries.zip(rows) {
            let (log, delta, scale) = (self.logsumexp[query], self.deltas[query], scores.scale);
            vectorized(
                #[inline(always)]
                || {
                    for (weight, grad) in weights.iter_mut().zip(grads) {
                        *weight = weight.minus(log).exp();
                        *grad = weight.times(grad.minus(delta)).times(scale);
                    }
                },
            );
        }
    }

    /// Adds a block's products to the gradients of its queries, keys and values.
    fn add(
        &self,
        queries: Range<usize>,
        keys: Range<usize>,
        weights: &[T],
        grads: &[T],
        [query, key, value]: [&mut [T]; 3],
    ) {
        let AttentionLengths { width, values, .. } = self.scores.lengths;
        let (rows, columns) = (queries.len(), keys.len());
        let lower = |x: &HeadMatrix<T>, of: &Range<usize>| (x.rows(of.start, of.len()), x.steps);
        let products = [
            MatrixProduct {
                rows,
                depth: columns,
                columns: width,
                a: (grads.as_ptr(), [columns, 1]),
                b: lower(&self.scores.key, &keys),
                out: (query.as_mut_ptr(), [width, 1]),
                adds: true,
            },
            MatrixProduct {
                rows: columns,
                depth: rows,
                columns: width,
                a: (grads.as_ptr(), [1, columns]),
                b: lower(&self.scores.query, &queries),
                out: (key.as_mut_ptr(), [width, 1]),
                adds: true,
            },
            MatrixProduct {
                rows: columns,
                depth: rows,
                columns: values,
                a: (weights.as_ptr(), [1, columns]),
                b: lower(&self.grad, &queries),
                out: (value.as_mut_ptr(), [values, 1]),
                adds: true,
            },
        ];
        // SAFETY: the blocks of weights and gradients and the rows of the operands are in bounds;
        // each result has room for its product and has been initialized.
        products.into_iter().for_each(|product| unsafe { product.run() });
    }
}
