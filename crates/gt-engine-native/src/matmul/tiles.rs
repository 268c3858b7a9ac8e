//! A product that can be paused: computed in tiles of rows and columns.

use super::product::{is_better_transposed, large, product};
use super::{Matrix, ProductLengths, least_part};
use crate::element::Number;
use crate::threads::{SharedPtr, Threads};

/// The least rows and columns, and multiplications, of a tile of a product that can be paused: about a
/// millisecond, of which repeated packing takes less than a hundredth.
const TILE: usize = 256;
pub(super) const TILE_WORK: usize = 1 << 27;

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
    let (by_rows, by_columns) = tile_cuts(lengths);
    let is_transposed = is_better_transposed(lengths, a, b);
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

/// Returns how the rows and the columns of a product are cut into tiles.
fn tile_cuts(ProductLengths { rows, depth, columns }: ProductLengths) -> (Cuts, Cuts) {
    let area = TILE_WORK / depth.max(1);
    let side = area.isqrt().max(TILE);
    // If one side of the product is short, the other one of its tiles is longer.
    let tall = (area / columns.clamp(1, side)).max(side).next_multiple_of(16);
    let wide = (area / rows.clamp(1, side)).max(side).next_multiple_of(16);
    let by_rows = Cuts::new(rows, tall, least_part(rows, columns.min(wide)));
    let by_columns = Cuts::new(columns, wide, least_part(columns, rows.min(tall)));
    (by_rows, by_columns)
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
        for (rows, depth, columns, count) in [
            (2048, 2048, 2048, 64),
            (1024, 1024, 1024, 9),
            (512, 512, 512, 1),
            (8192, 8192, 8192, 1024),
            (65, 4096, 100_000, 196),
            (1_000_000, 64, 64, 31),
            (300, 0, 300, 1),
            (2, 2, 2, 1),
        ] {
            let (by_rows, by_columns) = tile_cuts(ProductLengths { rows, depth, columns });
            assert_eq!(by_rows.count * by_columns.count, count, "{rows} x {depth} x {columns}");
            for (cuts, length) in [(by_rows, rows), (by_columns, columns)] {
                let mut end = 0;
                for index in 0..cuts.count {
                    let (start, part) = cuts.part(index);
                    assert_eq!(start, end);
                    assert!(cuts.count == 1 || part >= 65, "gemm would sum in another order");
                    end = start + part;
                }
                assert_eq!(end, length);
            }
        }
    }
}
