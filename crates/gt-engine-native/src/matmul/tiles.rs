//! A product that can be paused: computed in tiles of rows and columns.

use super::product::{DEPTH, depth_step, is_better_transposed, large, product};
use super::{Matrix, ProductLengths, least_part};
use crate::element::Number;
use crate::threads::{SharedPtr, Threads};

/// The multiplications between two points where a product can be paused: one to two milliseconds
/// of float32, twice as long of float64.
pub(super) const TILE_WORK: usize = 1 << 27;
/// The least width of a tile, and its least length along the other side, if that is cut as well.
/// gemm copies both operands of a tile: smaller ones lose more by that. Strips whose depth is not
/// cut are narrower.
const WIDTH: usize = 256;
const UNCUT_WIDTH: usize = 80;
const LENGTH: usize = 512;

/// Computes one product in tiles of rows and columns. It can be paused between two tiles, and
/// between two parts of a tile's depth.
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
    // Several threads end at about the same time if there are more tiles.
    let work = TILE_WORK / threads.count().min(2);
    let (by_rows, by_columns) = tile_cuts(lengths, depth_step::<T>(lengths), work, is_transposed);
    let (out, pass) = (SharedPtr::new(out), threads.pass());
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
                product(lengths, a, b, out, columns, &pass);
            } else {
                large(lengths, a, b, out, columns, is_transposed, &pass);
            }
        }
    });
}

/// Returns how the rows and the columns of a product are cut into tiles: into strips of columns, or
/// of rows if the transposed result is computed, and these again if they take long. The depth is
/// cut into parts of length `depth`, and `work` is that of a tile's part.
fn tile_cuts(
    lengths: ProductLengths,
    depth: usize,
    work: usize,
    is_transposed: bool,
) -> (Cuts, Cuts) {
    let ProductLengths { rows, columns, .. } = lengths;
    let (across, along) = if is_transposed { (rows, columns) } else { (columns, rows) };
    let least_width = if depth > DEPTH { UNCUT_WIDTH } else { WIDTH };
    let width = (work / (along * depth).max(1)).max(least_width).next_multiple_of(16);
    let length = work / (width.min(across) * depth).max(1);
    let length = length.max(LENGTH).next_multiple_of(16);
    let across_cuts = Cuts::new(across, width, least_part(across, along));
    let along_cuts = Cuts::new(along, length, least_part(along, width.min(across)));
    if is_transposed { (across_cuts, along_cuts) } else { (along_cuts, across_cuts) }
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
    fn tiles_cover_a_product_and_take_about_a_millisecond_each() {
        for (rows, depth, columns, is_transposed, count) in [
            (2048, 2048, 2048, false, 16),
            (2048, 2048, 2048, true, 16),
            (1024, 1024, 1024, false, 4),
            (512, 512, 512, false, 1),
            (8192, 8192, 8192, false, 256),
            (65, 4096, 100_000, false, 25),
            (1100, 1000, 300, false, 1),
            (3228, 3983, 293, false, 3),
            (1_000_000, 64, 64, false, 31),
            (64, 64, 1_000_000, false, 31),
            (64, 64, 1_000_000, true, 31),
            (300, 0, 300, false, 1),
            (2, 2, 2, true, 1),
        ] {
            let lengths = ProductLengths { rows, depth, columns };
            let (by_rows, by_columns) =
                tile_cuts(lengths, depth_step::<f32>(lengths), TILE_WORK, is_transposed);
            let made = by_rows.count * by_columns.count;
            assert_eq!(made, count, "{rows} x {depth} x {columns}");
            for (cuts, length) in [(&by_rows, rows), (&by_columns, columns)] {
                let mut end = 0;
                for index in 0..cuts.count {
                    let (start, part) = cuts.part(index);
                    assert_eq!(start, end);
                    end = start + part;
                }
                assert_eq!(end, length);
            }
            for index in 0..made {
                let (_, rows) = by_rows.part(index / by_columns.count);
                let (_, columns) = by_columns.part(index % by_columns.count);
                let in_order = (rows > 64 || columns > 64) && rows * columns > 256;
                assert!(made == 1 || in_order, "gemm would sum a tile in another order");
                let tile = ProductLengths { rows, columns, ..lengths };
                assert_eq!(depth_step::<f32>(tile), depth_step::<f32>(lengths));
            }
        }
    }

    /// What a product calls where it can be paused, counted.
    fn pauses<T: Number>([rows, depth, columns]: [usize; 3]) -> usize {
        let ones = |count: usize| vec![T::ONE; count];
        let (a, b, mut out) = (ones(rows * depth), ones(depth * columns), ones(rows * columns));
        let matrix = |x: &[T], columns: usize| Matrix {
            first: SharedPtr::new(x.as_ptr().cast_mut()),
            row: columns as isize,
            column: 1,
        };
        let lengths = ProductLengths { rows, depth, columns };
        let (a, b) = (matrix(&a, depth), matrix(&b, columns));
        let count = std::cell::Cell::new(0);
        // SAFETY: the lengths are those of the vectors, which are contiguous and do not overlap.
        unsafe {
            product(lengths, a, b, out.as_mut_ptr(), columns, &|| count.set(count.get() + 1));
        }
        count.get()
    }

    #[test]
    fn a_product_of_a_single_tile_can_be_paused() {
        assert_eq!(pauses::<f32>([100, 5120, 100]), 9);
        assert_eq!(pauses::<f32>([100, 512, 100]), 0);
        assert_eq!(pauses::<i32>([100, 512, 100]), 99);
    }

    #[test]
    fn strips_whose_depth_is_not_cut_are_narrow() {
        let lengths = ProductLengths { rows: 2048, depth: 2048, columns: 2048 };
        let depth = depth_step::<crate::element::Complex<f32>>(lengths);
        let (by_rows, by_columns) = tile_cuts(lengths, depth, TILE_WORK, false);
        assert_eq!((by_rows.step, by_columns.step), (832, 80));
    }
}
