//! Rows whose elements are not side by side in memory, but those of several rows are: a transposed
//! matrix's. They are folded together, each in the order of [`row`](super::row), without a copy.

use super::{BLOCK, Fold, LANES, PIECE};
use crate::element::Number;
use crate::simd::vectorized;

/// Folds what `value` makes of the elements of as many rows as there are totals: element `k` of row `r`
/// is `x[k * stride + r]`, and there are `depth` of them in each.
pub fn rows_side_by_side<T: Number, F: Fold<T>>(
    x: &[T],
    stride: usize,
    depth: usize,
    totals: &mut [F::Total],
    value: impl Fn(usize, T) -> T + Copy,
) {
    let width = totals.len();
    let mut lanes = vec![F::START; LANES.min(depth) * width];
    let mut pieces = vec![F::START_TOTAL; width];
    totals.fill(F::START_TOTAL);
    for piece in (0..depth).step_by(PIECE) {
        pieces.fill(F::START_TOTAL);
        for first in (piece..depth.min(piece + PIECE)).step_by(BLOCK) {
            let rows = first..depth.min(piece + PIECE).min(first + BLOCK);
            let row = |k: usize| &x[k * stride..][..width];
            let folded = vectorized(
                #[inline(always)]
                || block(rows, width, &mut lanes, row, value, F::START, F::push),
            );
            for (piece, folded) in pieces.iter_mut().zip(folded) {
                *piece = F::total(*piece, *folded);
            }
        }
        for (total, piece) in totals.iter_mut().zip(&pieces) {
            *total = F::merge(*total, *piece);
        }
    }
}

/// Folds at most [`BLOCK`] elements of each row; returns what they are folded into.
#[inline(always)]
fn block<'l, 'x, T: Number>(
    elements: std::ops::Range<usize>,
    width: usize,
    lanes: &'l mut [T],
    row: impl Fn(usize) -> &'x [T],
    value: impl Fn(usize, T) -> T + Copy,
    start: T,
    push: impl Fn(T, T) -> T,
) -> &'l [T] {
    let chunks = elements.len() / LANES;
    let rest = elements.start + chunks * LANES..elements.end;
    if chunks == 0 {
        lanes[..width].fill(start);
    } else {
        lanes.fill(start);
        // Four chunks at a time, as the lanes are read and written once each time.
        for chunk in (0..chunks / 4 * 4).step_by(4) {
            for (lane, folded) in lanes.chunks_exact_mut(width).enumerate() {
                let k: [usize; 4] =
                    std::array::from_fn(|i| elements.start + (chunk + i) * LANES + lane);
                let [a, b, c, d] = k.map(&row);
                for ((((folded, a), b), c), d) in folded.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                    let ab = push(push(*folded, value(k[0], *a)), value(k[1], *b));
                    *folded = push(push(ab, value(k[2], *c)), value(k[3], *d));
                }
            }
        }
        for chunk in chunks / 4 * 4..chunks {
            for (lane, folded) in lanes.chunks_exact_mut(width).enumerate() {
                let k = elements.start + chunk * LANES + lane;
                for (folded, x) in folded.iter_mut().zip(row(k)) {
                    *folded = push(*folded, value(k, *x));
                }
            }
        }
        let mut half = LANES / 2;
        while half > 0 {
            let (into, from) = lanes.split_at_mut(half * width);
            for (into, from) in into.iter_mut().zip(&from[..half * width]) {
                *into = push(*into, *from);
            }
            half /= 2;
        }
    }
    let folded = &mut lanes[..width];
    for k in rest {
        for (folded, x) in folded.iter_mut().zip(row(k)) {
            *folded = push(*folded, value(k, *x));
        }
    }
    folded
}
