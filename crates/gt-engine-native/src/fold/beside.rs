//! Rows of a matrix with the same other row, folded several at once: what the other row has is read
//! once, and the processor need not wait for one sum before it adds to the next.

use std::array::from_fn;

use super::{BLOCK, Fold, LANES, PIECE};
use crate::element::Number;

/// Folds what `value` makes of each element of some rows and of `with`, all of one length, as
/// [`row_of`](super::row_of) folds those of each row.
#[inline(always)]
pub fn rows_beside<T: Number, F: Fold<T>, const N: usize>(
    rows: [&[T]; N],
    with: &[T],
    value: impl Fn(T, T) -> T + Copy,
) -> [F::Total; N] {
    let length = with.len();
    let mut totals = [F::START_TOTAL; N];
    for piece in (0..length).step_by(PIECE) {
        let mut pieces = [F::START_TOTAL; N];
        for first in (piece..length.min(piece + PIECE)).step_by(BLOCK) {
            let end = length.min(first + BLOCK);
            let rows: [&[T]; N] = from_fn(|row| &rows[row][first..end]);
            let folded = block(rows, &with[first..end], value, F::START, F::push);
            for row in 0..N {
                pieces[row] = F::total(pieces[row], folded[row]);
            }
        }
        for row in 0..N {
            totals[row] = F::merge(totals[row], pieces[row]);
        }
    }
    totals
}

/// Folds at most [`BLOCK`] elements of each row.
#[inline(always)]
fn block<T: Number, const N: usize>(
    rows: [&[T]; N],
    with: &[T],
    value: impl Fn(T, T) -> T + Copy,
    start: T,
    push: impl Fn(T, T) -> T,
) -> [T; N] {
    let (chunks, rest) = with.as_chunks::<LANES>();
    let of: [&[[T; LANES]]; N] = from_fn(|row| &rows[row].as_chunks::<LANES>().0[..chunks.len()]);
    let mut folded = [start; N];
    if !chunks.is_empty() {
        let mut lanes = [[start; LANES]; N];
        // Chunk by chunk, as memory is read fastest from one end to the other.
        for (index, with) in chunks.iter().enumerate() {
            for row in 0..N {
                let of = &of[row][index];
                for lane in 0..LANES {
                    lanes[row][lane] = push(lanes[row][lane], value(of[lane], with[lane]));
                }
            }
        }
        folded = lanes.map(|lanes| super::fold_lanes(lanes, &push));
    }
    for row in 0..N {
        let own = &rows[row][with.len() - rest.len()..];
        for (own, with) in own.iter().zip(rest) {
            folded[row] = push(folded[row], value(*own, *with));
        }
    }
    folded
}
