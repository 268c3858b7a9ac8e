//! The order in which elements are folded. It depends only on their number, not on threads or on
//! what else a program computes. All code folds in this order, so that results have the same bits.
//!
//! - A run is split into blocks of [`BLOCK`]. Within a block, elements whose indices are equal
//!   modulo [`LANES`] are folded into one lane, the lanes half by half into one value, and elements
//!   that do not fill all lanes come last. Blocks are folded into pieces of [`PIECE`] elements, and
//!   pieces into the whole.
//! - Columns are folded row by row in blocks of [`ROWS`]. Blocks are folded into pieces of
//!   [`piece_rows`], and pieces into the whole.

use std::mem::MaybeUninit;

use super::Fold;
use crate::element::Number;
use crate::simd::vectorized;
use crate::threads::Threads;

/// Independent folds side by side, enough to fill the vector units.
pub const LANES: usize = 64;
/// Elements in a block.
pub const BLOCK: usize = 4096;
/// Elements in a piece, which one thread folds.
pub const PIECE: usize = 1 << 16;
/// Columns that are folded together, and rows in a block of them.
pub const COLUMNS: usize = 512;
pub const ROWS: usize = 64;

/// Returns the rows of a piece of this many columns: whole blocks.
pub fn piece_rows(columns: usize) -> usize {
    (PIECE / columns.max(1) / ROWS).max(1) * ROWS
}

/// Folds a run.
pub fn row<T: Number, F: Fold<T>>(x: &[T]) -> F::Total {
    x.chunks(PIECE).fold(F::START_TOTAL, |total, x| F::merge(total, piece::<T, F>(x)))
}

/// Folds `value` of the elements of several runs of one length, as [`row`] folds a run of these
/// values.
#[inline(always)]
pub fn row_of<T: Number, F: Fold<T>, const N: usize>(
    runs: [&[T]; N],
    value: impl Fn([T; N]) -> T + Copy,
) -> F::Total {
    let length = runs[0].len();
    let part = |from: usize, to: usize| runs.map(|run| &run[from..to.min(length)]);
    let mut total = F::START_TOTAL;
    for piece in (0..length).step_by(PIECE) {
        let mut folded = F::START_TOTAL;
        for block in (piece..length.min(piece + PIECE)).step_by(BLOCK) {
            let block = part(block, block + BLOCK);
            folded = F::total(folded, block_of_values(block, value, F::START, F::push));
        }
        total = F::merge(total, folded);
    }
    total
}

/// Folds at most [`BLOCK`] values.
#[inline(always)]
fn block_of_values<T: Number, const N: usize>(
    runs: [&[T]; N],
    value: impl Fn([T; N]) -> T + Copy,
    start: T,
    push: impl Fn(T, T) -> T,
) -> T {
    let count = runs[0].len() / LANES;
    let chunks = runs.map(|run| &run.as_chunks::<LANES>().0[..count]);
    let length = runs[0].len();
    let rest = runs.map(|run| &run[count * LANES..length]);
    let mut folded = start;
    if count > 0 {
        let mut lanes = [start; LANES];
        push_chunks(&mut lanes, chunks, value, &push);
        folded = fold_lanes(lanes, &push);
    }
    for index in 0..length - count * LANES {
        folded = push(folded, value(rest.map(|rest| rest[index])));
    }
    folded
}

/// Folds a run on several threads.
pub fn row_with<T: Number, F: Fold<T>>(threads: &mut Threads, x: &[T]) -> F::Total {
    let mut totals = vec![F::START_TOTAL; x.len().div_ceil(PIECE)];
    threads.for_each_part(&mut totals, 1, |index, total| {
        total[0] = piece::<T, F>(&x[index * PIECE..x.len().min((index + 1) * PIECE)]);
    });
    totals.into_iter().fold(F::START_TOTAL, F::merge)
}

/// Folds a run whose blocks have been folded.
pub fn row_of_blocks<T: Number, F: Fold<T>>(blocks: &[T]) -> F::Total {
    blocks.chunks(PIECE / BLOCK).fold(F::START_TOTAL, |total, blocks| {
        let piece = blocks.iter().fold(F::START_TOTAL, |piece, x| F::total(piece, *x));
        F::merge(total, piece)
    })
}

/// Folds at most [`PIECE`] elements.
pub fn piece<T: Number, F: Fold<T>>(x: &[T]) -> F::Total {
    vectorized(
        #[inline(always)]
        || {
            let mut total = F::START_TOTAL;
            for block in x.chunks(BLOCK) {
                total = F::total(total, block_of_row::<T, F>(block));
            }
            total
        },
    )
}

/// Folds at most [`BLOCK`] elements.
#[inline(always)]
pub fn block_of_row<T: Number, F: Fold<T>>(block: &[T]) -> T {
    if F::LOOKS_FOR_NAN && !has_nan(block) {
        return block_of_values([block], |[x]| x, F::START, F::push_number);
    }
    block_of_values([block], |[x]| x, F::START, F::push)
}

#[inline(always)]
fn has_nan<T: Number>(x: &[T]) -> bool {
    x.iter().fold(false, |any, x| any | x.is_nan())
}

/// Folds chunks into the lanes, four at a time, so that lanes are loaded and stored once for four.
#[inline(always)]
fn push_chunks<T: Number, const N: usize>(
    lanes: &mut [T; LANES],
    chunks: [&[[T; LANES]]; N],
    value: impl Fn([T; N]) -> T + Copy,
    push: impl Fn(T, T) -> T,
) {
    let count = chunks[0].len();
    let (fours, ones) = (count / 4, count % 4);
    let four = chunks.map(|chunks| &chunks.as_chunks::<4>().0[..fours]);
    let one = chunks.map(|chunks| &chunks[fours * 4..][..ones]);
    for index in 0..fours {
        let four = four.map(|four| &four[index]);
        for (lane, folded) in lanes.iter_mut().enumerate() {
            for chunk in 0..4 {
                *folded = push(*folded, value(four.map(|four| four[chunk][lane])));
            }
        }
    }
    for index in 0..ones {
        let one = one.map(|one| &one[index]);
        for (lane, folded) in lanes.iter_mut().enumerate() {
            *folded = push(*folded, value(one.map(|one| one[lane])));
        }
    }
}

#[inline(always)]
fn fold_lanes<T: Number>(mut lanes: [T; LANES], push: impl Fn(T, T) -> T) -> T {
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = push(lanes[i], lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// A block that is folded as its elements arrive, as [`block_of_row`] folds all of them.
pub struct FoldBlock<T> {
    lanes: [T; LANES],
    /// The last elements, too few to fill all lanes.
    rest: [T; LANES],
    count: usize,
    has_nan: bool,
}

impl<T: Number> FoldBlock<T> {
    pub fn new<F: Fold<T>>() -> FoldBlock<T> {
        FoldBlock { lanes: [F::START; LANES], rest: [F::START; LANES], count: 0, has_nan: false }
    }

    /// Returns how many elements have been pushed.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Folds further elements.
    #[inline(always)]
    pub fn push<F: Fold<T>>(&mut self, mut x: &[T]) {
        self.has_nan |= F::LOOKS_FOR_NAN && has_nan(x);
        let held = self.count % LANES;
        self.count += x.len();
        if held > 0 {
            let (first, others) = x.split_at(x.len().min(LANES - held));
            self.rest[held..held + first.len()].copy_from_slice(first);
            if held + first.len() < LANES {
                return;
            }
            let rest = self.rest;
            self.push_chunks::<F>(&[rest]);
            x = others;
        }
        let (chunks, rest) = x.as_chunks::<LANES>();
        self.push_chunks::<F>(chunks);
        self.rest[..rest.len()].copy_from_slice(rest);
    }

    #[inline(always)]
    fn push_chunks<F: Fold<T>>(&mut self, x: &[[T; LANES]]) {
        if F::LOOKS_FOR_NAN && !self.has_nan {
            push_chunks(&mut self.lanes, [x], |[x]| x, F::push_number);
        } else {
            push_chunks(&mut self.lanes, [x], |[x]| x, F::push);
        }
    }

    /// Returns the result, and empties the block.
    #[inline(always)]
    pub fn finish<F: Fold<T>>(&mut self) -> T {
        let is_filled = self.count >= LANES;
        let folded = if is_filled { fold_lanes(self.lanes, F::push) } else { F::START };
        let rest = &self.rest[..self.count % LANES];
        let folded = rest.iter().fold(folded, |folded, x| F::push(folded, *x));
        *self = FoldBlock::new::<F>();
        folded
    }
}

/// Folds each column of `rows` rows into one result.
pub fn columns<T: Number, F: Fold<T>>(x: &[T], rows: usize, out: &mut [MaybeUninit<T>]) {
    let width = out.len();
    for (index, out) in out.chunks_mut(COLUMNS).enumerate() {
        let x = x.get(index * COLUMNS..).unwrap_or_default();
        strip_of_columns::<T, F>(x, width, rows, out);
    }
}

/// As [`columns`], on several threads: by rows if there are many, else by columns.
pub fn columns_with<T: Number, F: Fold<T>>(
    threads: &mut Threads,
    x: &[T],
    rows: usize,
    out: &mut [MaybeUninit<T>],
) {
    let width = out.len();
    let piece = piece_rows(width);
    if rows < 4 * piece {
        return threads.for_each_part(out, COLUMNS, |index, out| {
            strip_of_columns::<T, F>(&x[index * COLUMNS..], width, rows, out);
        });
    }
    let mut parts = vec![F::START_TOTAL; rows.div_ceil(piece) * width];
    threads.for_each_part(&mut parts, width, |index, part| {
        let first = index * piece;
        piece_of_columns::<T, F>(&x[first * width..], width, piece.min(rows - first), part);
    });
    let mut totals = vec![F::START_TOTAL; width];
    for part in parts.chunks(width) {
        merge_columns::<T, F>(&mut totals, part);
    }
    finish_columns::<T, F>(&totals, rows, out);
}

/// Folds at most [`COLUMNS`] columns of rows that are `stride` elements apart.
fn strip_of_columns<T: Number, F: Fold<T>>(
    x: &[T],
    stride: usize,
    rows: usize,
    out: &mut [MaybeUninit<T>],
) {
    let piece = piece_rows(stride);
    let mut totals = [F::START_TOTAL; COLUMNS];
    let totals = &mut totals[..out.len()];
    for first in (0..rows).step_by(piece) {
        let mut part = [F::START_TOTAL; COLUMNS];
        let part = &mut part[..out.len()];
        piece_of_columns::<T, F>(&x[first * stride..], stride, piece.min(rows - first), part);
        merge_columns::<T, F>(totals, part);
    }
    finish_columns::<T, F>(totals, rows, out);
}

/// Folds as many columns as there are totals, over the rows of one piece. Element (r, c) is at
/// `x[r * stride + c]`.
pub fn piece_of_columns<T: Number, F: Fold<T>>(
    x: &[T],
    stride: usize,
    rows: usize,
    totals: &mut [F::Total],
) {
    vectorized(
        #[inline(always)]
        || {
            for start in (0..rows).step_by(ROWS) {
                let (x, rows) = (&x[start * stride..], ROWS.min(rows - start));
                let mut column = 0;
                let (wide, rest) = totals.as_chunks_mut::<128>();
                for totals in wide {
                    block_of_columns::<T, F, 128>(&x[column..], stride, rows, totals);
                    column += 128;
                }
                let (narrow, rest) = rest.as_chunks_mut::<16>();
                for totals in narrow {
                    block_of_columns::<T, F, 16>(&x[column..], stride, rows, totals);
                    column += 16;
                }
                for total in rest {
                    let totals = std::array::from_mut(total);
                    block_of_columns::<T, F, 1>(&x[column..], stride, rows, totals);
                    column += 1;
                }
            }
        },
    );
}

/// Folds a block of N columns, which stay in registers, and adds it to their totals.
#[inline(always)]
fn block_of_columns<T: Number, F: Fold<T>, const N: usize>(
    x: &[T],
    stride: usize,
    rows: usize,
    totals: &mut [F::Total; N],
) {
    let mut folded = [F::START; N];
    for row in 0..rows {
        let row: &[T; N] = x[row * stride..].first_chunk().expect("a row has N columns");
        push_row::<T, F>(&mut folded, row);
    }
    finish_block::<T, F>(totals, &folded);
}

fn finish_columns<T: Number, F: Fold<T>>(
    totals: &[F::Total],
    rows: usize,
    out: &mut [MaybeUninit<T>],
) {
    for (out, total) in out.iter_mut().zip(totals) {
        out.write(F::finish(*total, rows));
    }
}

/// Folds one more row into the columns of a block.
#[inline(always)]
pub fn push_row<T: Number, F: Fold<T>>(folded: &mut [T], row: &[T]) {
    for (folded, x) in folded.iter_mut().zip(row) {
        *folded = F::push(*folded, *x);
    }
}

/// Adds the folded block to its piece.
#[inline(always)]
pub fn finish_block<T: Number, F: Fold<T>>(piece: &mut [F::Total], folded: &[T]) {
    for (total, folded) in piece.iter_mut().zip(folded) {
        *total = F::total(*total, *folded);
    }
}

/// Adds the folded piece to the whole.
pub fn merge_columns<T: Number, F: Fold<T>>(totals: &mut [F::Total], piece: &[F::Total]) {
    for (total, piece) in totals.iter_mut().zip(piece) {
        *total = F::merge(*total, *piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::{Largest, Sum};

    fn numbers(count: usize) -> Vec<f32> {
        (0..count).map(|index| ((index * 7919) % 1013) as f32 / 97.0 - 5.0).collect()
    }

    #[test]
    fn a_block_does_not_depend_on_how_its_elements_are_pushed() {
        for count in [0, 1, 63, 64, 65, 1000, 4095, 4096] {
            let mut x = numbers(count);
            for with_nan in [false, true] {
                if with_nan && count > 7 {
                    x[7] = f32::NAN;
                }
                for step in [1, 7, 64, 100, 1024, 4096] {
                    let (mut sum, mut largest) =
                        (FoldBlock::new::<Sum>(), FoldBlock::new::<Largest>());
                    for part in x.chunks(step) {
                        sum.push::<Sum>(part);
                        largest.push::<Largest>(part);
                    }
                    let expected = [block_of_row::<f32, Sum>(&x), block_of_row::<f32, Largest>(&x)];
                    let found = [sum.finish::<Sum>(), largest.finish::<Largest>()];
                    assert_eq!(found.map(f32::to_bits), expected.map(f32::to_bits));
                }
            }
        }
    }

    #[test]
    fn single_values_fold_like_a_run() {
        for count in [0, 1, 63, 64, 1000, 4096, 5000, 70_000] {
            let (x, y) = (numbers(count), numbers(count + 1));
            let products: Vec<f32> = x.iter().zip(&y[1..]).map(|(x, y)| x * y).collect();
            let found = row_of::<f32, Sum, 2>([&x, &y[1..]], |[x, y]| x * y);
            assert_eq!(found.to_bits(), row::<f32, Sum>(&products).to_bits());
        }
    }

    #[test]
    fn pieces_and_blocks_fold_to_the_same_total() {
        for count in [1, 4096, 65_536, 200_000] {
            let x = numbers(count);
            let blocks: Vec<f32> = x.chunks(BLOCK).map(block_of_row::<f32, Sum>).collect();
            let sum = row::<f32, Sum>(&x).to_bits();
            assert_eq!(sum, row_of_blocks::<f32, Sum>(&blocks).to_bits());
            for threads in [1, 3] {
                assert_eq!(sum, row_with::<f32, Sum>(&mut Threads::new(threads), &x).to_bits());
            }
        }
    }
}
