//! Philox4x32-10, the counter-based generator of Salmon et al., "Parallel Random Numbers: As Easy
//! as 1, 2, 3" (SC'11). An element's value depends only on seed, instruction and element index, so
//! a program draws the same numbers on any number of workers.

use crate::draws;

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// Returns four random words for a counter and a key.
#[inline(always)]
pub fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    // Unrolled, so that the compiler vectorizes loops over counters.
    let counter = round(0, counter, key);
    let counter = round(1, counter, key);
    let counter = round(2, counter, key);
    let counter = round(3, counter, key);
    let counter = round(4, counter, key);
    let counter = round(5, counter, key);
    let counter = round(6, counter, key);
    let counter = round(7, counter, key);
    let counter = round(8, counter, key);
    round(9, counter, key)
}

#[inline(always)]
fn round(number: u32, [a, b, c, d]: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let first = u64::from(MULTIPLIERS[0]) * u64::from(a);
    let second = u64::from(MULTIPLIERS[1]) * u64::from(c);
    let key0 = key[0].wrapping_add(WEYL[0].wrapping_mul(number));
    let key1 = key[1].wrapping_add(WEYL[1].wrapping_mul(number));
    [(second >> 32) as u32 ^ b ^ key0, second as u32, (first >> 32) as u32 ^ d ^ key1, first as u32]
}

/// The random numbers of one instruction. Element `i` of a tensor uses its share of the words of
/// counter `i / n`, where `n` is the number of elements that four words yield ([`crate::draws`]).
#[derive(Clone, Copy, Debug)]
pub struct RandomStream {
    seed: u64,
    instruction: u64,
}

impl RandomStream {
    pub fn new(seed: u64, instruction: u64) -> RandomStream {
        RandomStream { seed, instruction }
    }

    /// Returns four words for a counter.
    #[inline(always)]
    pub fn words(&self, counter: u64) -> [u32; 4] {
        let split = |value: u64| [value as u32, (value >> 32) as u32];
        let ([i0, i1], [n0, n1]) = (split(counter), split(self.instruction));
        philox([i0, i1, n0, n1], split(self.seed))
    }

    /// Returns four words for an attempt at an element, for rejection samplers. There are fewer
    /// than 2^48 elements, so the upper 16 bits of the counter distinguish attempts.
    #[inline]
    pub fn attempt(&self, element: u64, attempt: u16) -> [u32; 4] {
        self.words(element | u64::from(attempt) << 48)
    }

    /// Returns the number that `draw` computes for element `index`.
    #[inline]
    fn element<T: Copy, const N: usize>(&self, index: u64, draw: fn([u32; 4]) -> [T; N]) -> T {
        draw(self.words(index / N as u64))[(index % N as u64) as usize]
    }

    /// Returns a uniform number on `[0, 1)` with 24 random bits, exact in float32.
    pub fn uniform_f32(&self, index: u64) -> f32 {
        self.element(index, draws::uniforms_f32)
    }

    /// Returns a uniform number on `[0, 1)` with 53 random bits.
    pub fn uniform_f64(&self, index: u64) -> f64 {
        self.element(index, draws::uniforms_f64)
    }

    /// Returns a standard normal number, computed in float32.
    pub fn normal_f32(&self, index: u64) -> f32 {
        self.element(index, draws::normals_f32)
    }

    /// Returns a standard normal number, computed in float64.
    pub fn normal_f64(&self, index: u64) -> f64 {
        self.element(index, draws::normals_f64)
    }

    /// Returns a uniform integer on `low..high`; `high` must be above `low`.
    pub fn integer(&self, index: u64, low: i64, high: i64) -> i64 {
        let span = high.wrapping_sub(low) as u64;
        let words = self.words(index / 2);
        low.wrapping_add(draws::below(words, span)[(index % 2) as usize] as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers from the Random123 distribution.
    #[test]
    fn equals_the_random123_vectors() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox(
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0]
            ),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    fn check_moments(normal: impl Fn(u64) -> f64) {
        let n = 100_000;
        let moment = |power| (0..n).map(|i| normal(i).powi(power)).sum::<f64>() / n as f64;
        let moments = [1, 2, 3, 4].map(moment);
        let expected = [(0.0, 0.013), (1.0, 0.018), (0.0, 0.05), (3.0, 0.13)];
        for (moment, (right, error)) in moments.iter().zip(expected) {
            assert!((moment - right).abs() < error, "{moments:?}");
        }
    }

    #[test]
    fn moments_are_right() {
        let stream = RandomStream::new(7, 3);
        check_moments(|i| f64::from(stream.normal_f32(i)));
        check_moments(|i| stream.normal_f64(i));
        let n = 100_000;
        let uniform = (0..n).map(|i| stream.uniform_f64(i)).sum::<f64>() / n as f64;
        assert!((uniform - 0.5).abs() < 0.005, "{uniform}");
    }

    #[test]
    fn attempts_differ() {
        let stream = RandomStream::new(7, 3);
        assert_eq!(stream.attempt(5, 0), stream.words(5));
        assert_ne!(stream.attempt(5, 1), stream.attempt(5, 2));
        assert_ne!(stream.attempt(5, 1), stream.attempt(6, 1));
    }

    #[test]
    fn integers_stay_in_range() {
        let stream = RandomStream::new(1, 2);
        assert!((0..1000).all(|i| (-3..5).contains(&stream.integer(i, -3, 5))));
        assert!((0..1000).any(|i| stream.integer(i, -3, 5) == 4));
    }
}
