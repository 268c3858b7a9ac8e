//! A block of scores: a range of queries by a range of keys.

use std::ops::Range;

use super::heads::{HeadMatrix, Heads};
use super::{AttentionFloat, AttentionLengths};
use crate::convolution::MatrixProduct;
use crate::element::Bool;
use crate::simd::vectorized;

/// The mask: numbers that are added to the scores, or booleans that select the keys a query sees.
pub enum ScoreMask<'a, T> {
    Number(T),
    Added(Heads<'a, T>),
    Seen(Heads<'a, Bool>),
}

/// The operands of the scores, for all heads.
pub struct ScoreInputs<'a, T> {
    pub lengths: AttentionLengths,
    pub query: Heads<'a, T>,
    pub key: Heads<'a, T>,
    pub value: Heads<'a, T>,
    pub mask: ScoreMask<'a, T>,
    pub scale: T,
}

/// The operands of the scores of one head.
pub struct Scores<'a, T> {
    pub lengths: AttentionLengths,
    pub query: HeadMatrix<'a, T>,
    pub key: HeadMatrix<'a, T>,
    pub value: HeadMatrix<'a, T>,
    mask: HeadMask<'a, T>,
    pub scale: T,
}

enum HeadMask<'a, T> {
    Number(T),
    Added(HeadMatrix<'a, T>),
    Seen(HeadMatrix<'a, Bool>),
}

impl<'a, T: AttentionFloat> ScoreInputs<'a, T> {
    /// Returns the inputs of one head.
    pub fn head(&self, head: usize) -> Scores<'a, T> {
        Scores {
            lengths: self.lengths,
            query: self.query.head(head),
            key: self.key.head(head),
            value: self.value.head(head),
            mask: match &self.mask {
                ScoreMask::Number(number) => HeadMask::Number(*number),
                ScoreMask::Added(all) => HeadMask::Added(all.head(head)),
                ScoreMask::Seen(all) => HeadMask::Seen(all.head(head)),
            },
            scale: self.scale,
        }
    }
}

impl<T: AttentionFloat> Scores<'_, T> {
    /// Writes the scores of a range of queries (rows) and keys (columns); `T::LOWEST` where a key
    /// is not seen.
    ///
    /// # Panics
    /// `out` does not have queries times keys elements.
    pub fn write(&self, queries: Range<usize>, keys: Range<usize>, out: &mut [T]) {
        let (rows, columns) = (queries.len(), keys.len());
        assert!(out.len() == rows * columns);
        let product = MatrixProduct {
            rows,
            depth: self.lengths.width,
            columns,
            a: (self.query.rows(queries.start, rows), self.query.steps),
            b: (self.key.rows(keys.start, columns), transposed(self.key.steps)),
            out: (out.as_mut_ptr(), [columns, 1]),
            adds: false,
        };
        // SAFETY: the rows of queries and keys are in bounds; `out` has room for the result.
        unsafe { product.run() };
        for (query, row) in queries.zip(out.chunks_exact_mut(columns.max(1))) {
            vectorized(
                #[inline(always)]
                || self.mask_row(query, keys.start, row),
            );
        }
    }

    #[inline(always)]
    fn mask_row(&self, query: usize, first: usize, row: &mut [T]) {
        let scale = self.scale;
        match &self.mask {
            HeadMask::Number(number) => {
                row.iter_mut().for_each(|x| *x = x.times(scale).plus(*number));
            }
            HeadMask::Added(mask) => {
                let added = mask.from(query, first);
                combine(row, added, mask.steps[1], |x, added| x.times(scale).plus(added));
            }
            HeadMask::Seen(mask) => {
                let seen = mask.from(query, first);
                combine(row, seen, mask.steps[1], |x, seen| {
                    if seen.0 == 0 { T::LOWEST } else { x.times(scale) }
                });
            }
        }
        if self.lengths.is_causal {
            let seen = (query + 1).saturating_sub(first).min(row.len());
            row[seen..].fill(T::LOWEST);
        }
    }
}

/// Combines a row with elements that are `step` apart.
#[inline(always)]
fn combine<T: Copy, M: Copy>(row: &mut [T], with: &[M], step: usize, f: impl Fn(T, M) -> T) {
    match step {
        0 => row.iter_mut().for_each(|x| *x = f(*x, with[0])),
        1 => row.iter_mut().zip(with).for_each(|(x, with)| *x = f(*x, *with)),
        _ => row.iter_mut().zip(with.iter().step_by(step)).for_each(|(x, with)| *x = f(*x, *with)),
    }
}

/// Returns the strides of the transposed matrix.
pub fn transposed([row, column]: [usize; 2]) -> [usize; 2] {
    [column, row]
}
