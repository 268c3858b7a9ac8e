//! Transposition of matrices in memory.

use crate::simd::{InstructionSet, level, vectorized};

/// Rows and columns of a block that is transposed at once, in registers if the machine has the
/// instructions.
pub const BLOCK: usize = 8;
/// Columns that are transposed together: their cache lines stay in the cache.
const STRIP: usize = 64;

/// Copies a matrix that is stored by columns into one that is stored by rows.
///
/// # Safety
/// Element (r, c) can be read at `from[r + c * source]` and written at `to[r * target + c]`; the
/// two matrices do not overlap.
pub unsafe fn transpose<T: Copy>(
    rows: usize,
    columns: usize,
    from: *const T,
    source: isize,
    to: *mut T,
    target: isize,
) {
    let in_registers = size_of::<T>() == 4 && level() >= InstructionSet::V3;
    vectorized(
        #[inline(always)]
        || {
            for left in (0..columns).step_by(STRIP) {
                let right = columns.min(left + STRIP);
                for top in (0..rows).step_by(BLOCK) {
                    for left in (left..right).step_by(BLOCK) {
                        let (height, width) = (BLOCK.min(rows - top), BLOCK.min(right - left));
                        // SAFETY: top + row is below the rows and left + column below the columns,
                        // for which the caller has made its promise. Elements of 4 bytes are copied
                        // as they are, by instructions that the level has.
                        unsafe {
                            let from = from.offset(top as isize + left as isize * source);
                            let to = to.offset(top as isize * target + left as isize);
                            if in_registers && (height, width) == (BLOCK, BLOCK) {
                                block(from.cast(), source, to.cast(), target);
                            } else {
                                part([height, width], from, source, to, target);
                            }
                        }
                    }
                }
            }
        },
    );
}

/// Copies rows and columns element by element.
///
/// # Safety
/// As for [`transpose`].
#[inline(always)]
unsafe fn part<T: Copy>(
    [rows, columns]: [usize; 2],
    from: *const T,
    source: isize,
    to: *mut T,
    target: isize,
) {
    for row in 0..rows as isize {
        for column in 0..columns as isize {
            // SAFETY: the caller's promise.
            unsafe { *to.offset(row * target + column) = *from.offset(row + column * source) };
        }
    }
}

/// Copies [`BLOCK`] rows and columns of elements of 4 bytes.
///
/// # Safety
/// As for [`transpose`], at any alignment; the processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn block(from: *const f32, source: isize, to: *mut f32, target: isize) {
    use std::arch::x86_64::*;
    // Four rows of a column in the lower half of a register, and of the column four further in the
    // upper half: shuffles within the halves then yield rows of eight columns.
    let column = |column: isize, row: isize| {
        let at = |column: isize| from.wrapping_offset(column * source + row);
        // SAFETY: elements of the block.
        let (low, high) = unsafe { (_mm_loadu_ps(at(column)), _mm_loadu_ps(at(column + 4))) };
        _mm256_set_m128(high, low)
    };
    for row in [0, 4] {
        let [a, b, c, d] = [column(0, row), column(1, row), column(2, row), column(3, row)];
        let (ab, cd) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
        let (ab_high, cd_high) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
        let rows = [
            _mm256_shuffle_ps::<0b01_00_01_00>(ab, cd),
            _mm256_shuffle_ps::<0b11_10_11_10>(ab, cd),
            _mm256_shuffle_ps::<0b01_00_01_00>(ab_high, cd_high),
            _mm256_shuffle_ps::<0b11_10_11_10>(ab_high, cd_high),
        ];
        for (index, values) in rows.into_iter().enumerate() {
            // SAFETY: a row of the block.
            unsafe { _mm256_storeu_ps(to.offset((row + index as isize) * target), values) };
        }
    }
}

/// As above, for other architectures.
///
/// # Safety
/// As for [`transpose`].
#[cfg(not(target_arch = "x86_64"))]
unsafe fn block(from: *const f32, source: isize, to: *mut f32, target: isize) {
    // SAFETY: the caller's promise.
    unsafe { part([BLOCK, BLOCK], from, source, to, target) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_transposed() {
        for (rows, columns) in [(8, 8), (1, 9), (17, 64), (65, 75), (40, 3)] {
            let (source, target) = (rows + 3, columns + 2);
            let from: Vec<u32> = (0..source * columns).map(|x| x as u32 | 0x7f80_0000).collect();
            let wide: Vec<u64> = from.iter().map(|x| u64::from(*x)).collect();
            let mut to = vec![0u32; rows * target];
            let mut wide_to = vec![0u64; rows * target];
            // SAFETY: both matrices are within their vectors.
            unsafe {
                transpose(
                    rows,
                    columns,
                    from.as_ptr(),
                    source as isize,
                    to.as_mut_ptr(),
                    target as isize,
                );
                let to = wide_to.as_mut_ptr();
                transpose(rows, columns, wide.as_ptr(), source as isize, to, target as isize);
            }
            for index in 0..rows * target {
                let (row, column) = (index / target, index % target);
                let expected = if column < columns { from[row + column * source] } else { 0 };
                assert_eq!((to[index], wide_to[index]), (expected, u64::from(expected)));
            }
        }
    }
}
