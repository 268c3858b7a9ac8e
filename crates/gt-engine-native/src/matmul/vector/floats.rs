//! [`rows::block`](super::rows::block) for float32, with all lanes in AVX2 registers; compilers
//! would spill them to memory.

use std::arch::x86_64::*;
use std::array::from_fn;

use super::LANES;

/// Lanes of a register.
const WIDTH: usize = 8;
const REGISTERS: usize = LANES / WIDTH;

/// A mask for `maskload`: loaded `WIDTH - n` elements after the start, it selects the first n
/// lanes.
const MASK: [i32; 2 * WIDTH] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

/// Returns the sum of the products of a row with a vector of the same length.
#[target_feature(enable = "avx2")]
pub fn block(row: &[f32], vector: &[f32]) -> f32 {
    assert!(row.len() == vector.len(), "row and vector have equal lengths");
    let (x, y, length) = (row.as_ptr(), vector.as_ptr(), row.len());
    let add = |sum, x, y| _mm256_add_ps(sum, _mm256_mul_ps(x, y));
    let mut lanes = [_mm256_setzero_ps(); REGISTERS];
    let mut at = 0;
    while at + LANES <= length {
        for (register, lanes) in lanes.iter_mut().enumerate() {
            let from = at + register * WIDTH;
            // SAFETY: the next `LANES` elements are within both slices.
            let (x, y) = unsafe { (_mm256_loadu_ps(x.add(from)), _mm256_loadu_ps(y.add(from))) };
            *lanes = add(*lanes, x, y);
        }
        at += LANES;
    }
    for (register, lanes) in lanes.iter_mut().enumerate() {
        let from = at + register * WIDTH;
        if from < length {
            let count = (length - from).min(WIDTH);
            // SAFETY: the mask has `WIDTH` numbers from that position on, as `count` is at most
            // `WIDTH`; it selects the first `count` elements, which are within both slices.
            let (x, y) = unsafe {
                let mask = _mm256_loadu_si256(MASK.as_ptr().add(WIDTH - count).cast());
                (_mm256_maskload_ps(x.add(from), mask), _mm256_maskload_ps(y.add(from), mask))
            };
            *lanes = add(*lanes, x, y);
        }
    }
    let four: [_; 4] = from_fn(|register| _mm256_add_ps(lanes[register], lanes[register + 4]));
    let two: [_; 2] = from_fn(|register| _mm256_add_ps(four[register], four[register + 2]));
    let one = _mm256_add_ps(two[0], two[1]);
    let half = _mm_add_ps(_mm256_castps256_ps128(one), _mm256_extractf128_ps::<1>(one));
    let pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
    _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)))
}
