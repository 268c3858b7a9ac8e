//! A product that can be paused: computed in tiles of rows and columns.

use super::product::{is_better_transposed, large, product};
use super::{Matrix, ProductLengths, least_part};
use crate::element::Number;
use crate::threads::{SharedPtr, Threads};

/// The multiplications of a tile of a product that can be paused: about half a millisecond.
pub(super) const TILE_WORK: usize = 1 << 26;
/// The least width of a tile, and its least length along the other side, if that is cut as well. gemm
/// copies both operands of a tile: narrow strips of full length lose least by that.
const WIDTH: usize = 64;
const LENGTH: usize = 512;

/// Computes one product in tiles of rows and columns, between which it can be paused.
///
/// # Safety
/// As for [`super::split`].
pub(super) unsafe fn tiles<T: Number>(
    threads: &mut Threads,
    lengths: ProductLengths,
    a: Matrix<T>,
    b: Matrix<T>,
    out: *mut T,
) {
    let columns = lengths.columns;
    let is_transposed = is_better_transposed(lengths, a, b);
    let (by_rows, by_columns) = tile_cuts(lengths, is_transposed);
    let out = SharedPtr::new(out);
    threads.for_each(by_rows.count * by_columns.count, |piece| {
        let (row, rows) = by_rows.part(piece / by_columns.count);
        let (column, width) = by_columns.part(piece % by_columns.count);
        let lengths = ProductLengths { rows, columns: width, ..lengths };
        let (a, b) = (a.from(row, 0), b.from(0, column));
        // SAFETY: a part of the rows and columns, for which the caller's promise holds; no other
        // piece writes the same elements.
        unsafe {
            let out = out.get().add(row * columns + column);
            if by_rows.count * by_columns.count == 1 {
                product(lengths, a, b, out, columns);
            } else {
                large(lengths, a, b, out, columns, is_transposed);
            }
        }
    });
}

/// Returns how the rows and the columns of a product are cut into tiles: into strips of columns, or
/// of rows if the transposed result is computed, and these again if they take long.
fn tile_cuts(lengths: ProductLengths, is_transposed: bool) -> (Cuts, Cuts) {
    let ProductLengths { rows, depth, columns } = lengths;
    let (across, along) = if is_transposed { (rows, columns) } else { (columns, rows) };
    let width = (TILE_WORK / (along * depth).max(1)).max(WIDTH).next_multiple_of(16);
    let length = TILE_WORK / (width.min(across) * depth).max(1);
    let across_cuts = Cuts::new(across, width, least(across, along));
    let along_cuts =
        Cuts::new(along, length.max(LENGTH).next_multiple_of(16), least(along, width.min(across)));
    if is_transposed { (across_cuts, along_cuts) } else { (along_cuts, across_cuts) }
}

/// Returns the fewest rows or columns of a part, as [`least_part`]: a result with more than 64 on the
/// other side may have fewer.
fn least(length: usize, other: usize) -> usize {
    least_part(if other > 64 { 0 } else { length }, other)
}

/// A length cut into parts of `step`, the last of which is longer if it would be shorter than
/// allowed.
struct Cuts {
    length: usize,
    step: usize,
    count: usize,
}

impl Cuts {
    fn new(length: usize, step: usize, least: usize) -> Cuts {
        let step = step.max(least);
        let count = length.div_ceil(step).max(1);
        let last = length - (count - 1) * step;
        let count = if count > 1 && last < least { count - 1 } else { count };
        Cuts { length, step, count }
    }

    /// The start and the length of a part.
    fn part(&self, index: usize) -> (usize, usize) {
        let start = index * self.step;
        (start, if index + 1 == self.count { self.length - start } else { self.step })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_a_product_and_take_about_half_a_millisecond_each() {
        for (rows, depth, columns, is_transposed, count) in [
            (2048, 2048, 2048, false, 128),
            (2048, 2048, 2048, true, 128),
            (1024, 1024, 1024, false, 16),
            (512, 512, 512, false, 2),
            (8192, 8192, 8192, false, 2048),
            (65, 4096, 100_000, false, 391),
            (1_000_000, 64, 64, false, 62),
            (64, 64, 1_000_000, false, 62),
            (64, 64, 1_000_000, true, 62),
            (300, 0, 300, false, 1),
            (2, 2, 2, true, 1),
        ] {
            let lengths = ProductLengths { rows, depth, columns };
            let (by_rows, by_columns) = tile_cuts(lengths, is_transposed);
            let made = by_rows.count * by_columns.count;
            assert_eq!(made, count, "{rows} x {depth} x {columns}");
            for (cuts, length, other) in
                [(&by_rows, rows, by_columns.step), (&by_columns, columns, by_rows.step)]
            {
                let mut end = 0;
                for index in 0..cuts.count {
                    let (start, part) = cuts.part(index);
                    assert_eq!(start, end);
                    let in_order = part > 64 || other > 64 && part * other > 256;
                    assert!(cuts.count == 1 || in_order, "gemm would sum in another order");
                    end = start + part;
                }
                assert_eq!(end, length);
            }
        }
    }
}
