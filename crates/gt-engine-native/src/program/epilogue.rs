//! Epilogues: reductions over all tiles of a group, in the order of [`crate::fold`].

use std::marker::PhantomData;

use super::access::Tile;
use super::fold::TotalAsF64;
use crate::element::Number;
use crate::fold::{
    BLOCK, Fold, FoldBlock, ROWS, block_of_row, finish_block, push_row, row_of_blocks,
};
use crate::simd::vectorized;

/// The partial fold of one piece. Numbers are stored as float64, which represents them exactly.
pub trait PartialFold: Send {
    /// Folds the tiles of the piece, which are passed in order.
    ///
    /// # Safety
    /// As many elements of the folding's dtype as the tile has can be read at `x`, aligned.
    unsafe fn push(&mut self, tile: &Tile, x: *const u8);

    fn finish(self: Box<Self>) -> Folded;
}

/// The result of folding a piece.
#[derive(Default)]
pub struct Folded {
    /// The elements before the first whole block and after the last one, which belong to blocks
    /// shared with other pieces.
    edges: [Vec<f64>; 2],
    /// The folded blocks, or the totals of columns.
    totals: Vec<f64>,
    /// The column of the first total.
    column: usize,
}

impl Folded {
    /// Returns the first column, and the total of each column from there on.
    pub fn columns(&self) -> (usize, &[f64]) {
        (self.column, &self.totals)
    }
}

/// The part of a fold over all elements that belongs to one piece.
pub struct FoldRun<T, F> {
    /// The index of the next element among all.
    at: usize,
    /// The range of elements whose blocks are entirely within this piece.
    blocks: std::ops::Range<usize>,
    block: FoldBlock<T>,
    made: Folded,
    fold: PhantomData<fn() -> F>,
}

impl<T: Number, F: Fold<T>> FoldRun<T, F> {
    /// Creates the partial fold of a piece of whole rows, or of a part of one row.
    pub fn new(piece: &Tile, frame: &Tile) -> FoldRun<T, F> {
        let start = piece.row * frame.columns + piece.column;
        let end = start + piece.len();
        let first = start.next_multiple_of(BLOCK).min(end);
        // The last block may be shorter.
        let last = if end == frame.len() { end } else { end / BLOCK * BLOCK };
        let (block, made) = (FoldBlock::new::<F>(), Folded::default());
        FoldRun { at: start, blocks: first..last.max(first), block, made, fold: PhantomData }
    }
}

impl<T: Number, F: Fold<T> + 'static> PartialFold for FoldRun<T, F>
where
    F::Total: TotalAsF64,
{
    unsafe fn push(&mut self, tile: &Tile, x: *const u8) {
        // SAFETY: the caller's promise.
        let x = unsafe { std::slice::from_raw_parts(x.cast::<T>(), tile.len()) };
        let before = self.blocks.start.saturating_sub(self.at).min(x.len());
        let inside = self.blocks.end.saturating_sub(self.at).min(x.len());
        self.at += x.len();
        let as_f64 = |x: &T| x.to_f64();
        self.made.edges[0].extend(x[..before].iter().map(as_f64));
        self.made.edges[1].extend(x[inside.max(before)..].iter().map(as_f64));
        let mut x = &x[before..inside.max(before)];
        vectorized(
            #[inline(always)]
            || {
                while !x.is_empty() {
                    let (part, others) = x.split_at(x.len().min(BLOCK - self.block.count()));
                    self.block.push::<F>(part);
                    if self.block.count() == BLOCK {
                        self.made.totals.push(self.block.finish::<F>().to_f64());
                    }
                    x = others;
                }
            },
        );
    }

    fn finish(mut self: Box<Self>) -> Folded {
        if self.block.count() > 0 {
            self.made.totals.push(self.block.finish::<F>().to_f64());
        }
        self.made
    }
}

/// Merges the partial folds of all pieces, in their order, into the total of one run.
pub fn total<T: Number, F: Fold<T>>(parts: &[Folded]) -> f64
where
    F::Total: TotalAsF64,
{
    let mut blocks: Vec<T> = Vec::new();
    // Elements of a block that several pieces share.
    let mut shared: Vec<T> = Vec::new();
    for part in parts {
        let [before, after] = &part.edges;
        shared.extend(before.iter().map(|x| T::from_f64(*x)));
        if shared.len() == BLOCK {
            blocks.push(block_of_row::<T, F>(&shared));
            shared.clear();
        }
        blocks.extend(part.totals.iter().map(|x| T::from_f64(*x)));
        shared.extend(after.iter().map(|x| T::from_f64(*x)));
    }
    if !shared.is_empty() {
        blocks.push(block_of_row::<T, F>(&shared));
    }
    row_of_blocks::<T, F>(&blocks).into_f64()
}

/// The partial fold of the columns of a piece.
pub struct ColumnFolds<T, F: Fold<T>> {
    piece: Tile,
    /// The current block.
    folded: Vec<T>,
    totals: Vec<F::Total>,
}

impl<T: Number, F: Fold<T>> ColumnFolds<T, F> {
    pub fn new(piece: &Tile) -> ColumnFolds<T, F> {
        let (folded, totals) = (vec![F::START; piece.columns], vec![F::START_TOTAL; piece.columns]);
        ColumnFolds { piece: *piece, folded, totals }
    }
}

impl<T: Number, F: Fold<T> + 'static> PartialFold for ColumnFolds<T, F>
where
    F::Total: TotalAsF64,
{
    unsafe fn push(&mut self, tile: &Tile, x: *const u8) {
        // SAFETY: the caller's promise.
        let x = unsafe { std::slice::from_raw_parts(x.cast::<T>(), tile.len()) };
        let columns = tile.column - self.piece.column..;
        let folded = &mut self.folded[columns.clone()][..tile.columns];
        let totals = &mut self.totals[columns][..tile.columns];
        let first = tile.row - self.piece.row;
        vectorized(
            #[inline(always)]
            || {
                for (index, row) in x.chunks_exact(tile.columns).enumerate() {
                    push_row::<T, F>(folded, row);
                    let rows = first + index + 1;
                    if rows.is_multiple_of(ROWS) || rows == self.piece.rows {
                        finish_block::<T, F>(totals, folded);
                        folded.fill(F::START);
                    }
                }
            },
        );
    }

    fn finish(self: Box<Self>) -> Folded {
        let totals = self.totals.into_iter().map(TotalAsF64::into_f64).collect();
        Folded { totals, column: self.piece.column, ..Folded::default() }
    }
}
