//! Products of a vector with the rows of a matrix that is contiguous along rows.

use std::array::from_fn;

use super::LANES;
use crate::element::Number;
use crate::fold::{BLOCK, Fold, PIECE, Sum};

/// Lanes of a part: arrays of this length stay in a few vector registers.
const PART: usize = 16;
const PARTS: usize = LANES / PART;

/// Returns the sum of the products of a row with a vector of the same length.
///
/// The argument `block` sums at most [`BLOCK`] products, as the function [`block`] does.
#[inline(always)]
pub fn sum<T: Number>(
    row: &[T],
    vector: &[T],
    block: impl Fn(&[T], &[T]) -> T,
) -> <Sum as Fold<T>>::Total
where
    Sum: Fold<T>,
{
    // Loops that need no division for the number of iterations: most rows are one block.
    let mut total = Sum::START_TOTAL;
    let mut at = 0;
    while at < row.len() {
        let end = row.len().min(at + PIECE);
        let mut piece = Sum::START_TOTAL;
        while at < end {
            let last = end.min(at + BLOCK);
            piece = Sum::total(piece, block(&row[at..last], &vector[at..last]));
            at = last;
        }
        total = Sum::merge(total, piece);
    }
    total
}

/// Returns the sum of at most [`BLOCK`] products.
#[inline(always)]
pub fn block<T: Number>(row: &[T], vector: &[T]) -> T {
    let (x, x_rest) = row.as_chunks::<PART>();
    let (y, y_rest) = vector.as_chunks::<PART>();
    let y = &y[..x.len()];
    let mut lanes = [[T::ZERO; PART]; PARTS];
    let whole = x.len() / PARTS;
    for chunk in 0..whole {
        for (part, lanes) in lanes.iter_mut().enumerate() {
            let at = chunk * PARTS + part;
            *lanes = add(*lanes, &x[at], &y[at]);
        }
    }
    let left = whole * PARTS;
    for (part, (x, y)) in x[left..].iter().zip(&y[left..]).enumerate() {
        lanes[part] = add(lanes[part], x, y);
    }
    if !x_rest.is_empty() {
        // Pad with zeros, which change no lane.
        let (mut last, mut with) = ([T::ZERO; PART], [T::ZERO; PART]);
        last[..x_rest.len()].copy_from_slice(x_rest);
        with[..y_rest.len()].copy_from_slice(y_rest);
        let part = x.len() - left;
        lanes[part] = add(lanes[part], &last, &with);
    }
    add_lanes(lanes)
}

#[inline(always)]
fn add<T: Number>(lanes: [T; PART], x: &[T; PART], y: &[T; PART]) -> [T; PART] {
    from_fn(|lane| lanes[lane].plus(x[lane].times(y[lane])))
}

/// Adds the upper half of the lanes to the lower half, and so on down to one.
#[inline(always)]
fn add_lanes<T: Number>(mut lanes: [[T; PART]; PARTS]) -> T {
    let mut width = PARTS / 2;
    while width > 0 {
        for part in 0..width {
            let (one, other) = (lanes[part], lanes[part + width]);
            lanes[part] = from_fn(|lane| one[lane].plus(other[lane]));
        }
        width /= 2;
    }
    let eight: [T; 8] = add_halves(lanes[0]);
    let four: [T; 4] = add_halves(eight);
    let [first, second] = add_halves(four);
    first.plus(second)
}

#[inline(always)]
fn add_halves<T: Number, const ALL: usize, const HALF: usize>(x: [T; ALL]) -> [T; HALF] {
    const { assert!(ALL == 2 * HALF) };
    from_fn(|lane| x[lane].plus(x[lane + HALF]))
}
