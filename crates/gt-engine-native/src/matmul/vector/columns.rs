//! Products of a vector with the rows of a matrix that is contiguous along columns (a transposed
//! matrix). Several rows are summed together, without a copy.

use std::array::from_fn;
use std::ops::Range;

use super::LANES;
use crate::element::Number;
use crate::fold::{BLOCK, Fold, PIECE, Sum};
use crate::simd::vectorized;

/// Lanes that are held at a time: one for each level of pairs.
const HELD: usize = LANES.ilog2() as usize + 1;
/// Products that are added to a lane at once, so that it is loaded and stored once for all of them.
const AT_ONCE: usize = 8;

/// Computes, for as many rows as there are totals, the sum of products with the vector: element `k`
/// of row `r` is `x[k * stride + r]`.
pub fn sums<T: Number>(x: &[T], stride: usize, vector: &[T], totals: &mut [<Sum as Fold<T>>::Total])
where
    Sum: Fold<T>,
{
    let (width, depth) = (totals.len(), vector.len());
    let mut held = vec![T::ZERO; HELD * width];
    let mut pieces = vec![Sum::START_TOTAL; width];
    totals.fill(Sum::START_TOTAL);
    for piece in (0..depth).step_by(PIECE) {
        pieces.fill(Sum::START_TOTAL);
        let end = depth.min(piece + PIECE);
        for first in (piece..end).step_by(BLOCK) {
            let elements = first..end.min(first + BLOCK);
            vectorized(
                #[inline(always)]
                || block(x, stride, vector, elements, width, &mut held),
            );
            for (piece, sum) in pieces.iter_mut().zip(&held[..width]) {
                *piece = Sum::total(*piece, *sum);
            }
        }
        for (total, piece) in totals.iter_mut().zip(&pieces) {
            *total = Sum::merge(*total, *piece);
        }
    }
}

/// Sums at most [`BLOCK`] products of each row into the first of the rows in `held`.
///
/// The upper half of the lanes is added to the lower half, and so on. Each lane is computed just
/// before it is needed, so that only few are held: in the order of their bit-reversed numbers, and
/// merged as a binary counter carries.
#[inline(always)]
fn block<T: Number>(
    x: &[T],
    stride: usize,
    vector: &[T],
    elements: Range<usize>,
    width: usize,
    held: &mut [T],
) {
    // Lanes beyond these have no products: they are zero.
    let lanes = elements.len().next_power_of_two().min(LANES);
    let mut count = 0;
    for round in 0..lanes {
        let lane =
            if lanes == 1 { 0 } else { round.reverse_bits() >> (usize::BITS - lanes.ilog2()) };
        let sum = &mut held[count * width..][..width];
        let mut at = elements.start + lane;
        let mut is_first = true;
        while at + (AT_ONCE - 1) * LANES < elements.end {
            let k: [usize; AT_ONCE] = from_fn(|index| at + index * LANES);
            add(sum, k.map(|k| &x[k * stride..][..width]), k.map(|k| vector[k]), is_first);
            (at, is_first) = (at + AT_ONCE * LANES, false);
        }
        if is_first && at >= elements.end {
            sum.fill(T::ZERO);
        }
        while at < elements.end {
            add(sum, [&x[at * stride..][..width]], [vector[at]], is_first);
            (at, is_first) = (at + LANES, false);
        }
        count += 1;
        for _ in 0..round.trailing_ones() {
            count -= 1;
            let (pairs, last) = held.split_at_mut(count * width);
            for (pair, last) in pairs[(count - 1) * width..].iter_mut().zip(&last[..width]) {
                *pair = pair.plus(*last);
            }
        }
    }
}

/// Adds products of rows with their factors to sums, or to zeros if they are the first.
#[inline(always)]
fn add<T: Number, const N: usize>(
    sums: &mut [T],
    rows: [&[T]; N],
    factors: [T; N],
    is_first: bool,
) {
    let rows = rows.map(|row| &row[..sums.len()]);
    let each = |before: T, index: usize| {
        let mut sum = before;
        for (row, factor) in rows.iter().zip(factors) {
            sum = sum.plus(row[index].times(factor));
        }
        sum
    };
    if is_first {
        sums.iter_mut().enumerate().for_each(|(index, sum)| *sum = each(T::ZERO, index));
    } else {
        sums.iter_mut().enumerate().for_each(|(index, sum)| *sum = each(*sum, index));
    }
}
