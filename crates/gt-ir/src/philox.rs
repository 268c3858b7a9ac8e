//! Philox4x32-10, the counter-based generator of Salmon et al., "Parallel Random Numbers: As
//! Easy as 1, 2, 3" (SC'11). An element's value depends on (seed, instruction, element index)
//! alone, so the same program gives the same numbers on any number of workers.

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// Four random words for a counter and a key.
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let product0 = u64::from(MULTIPLIERS[0]) * u64::from(counter[0]);
        let product1 = u64::from(MULTIPLIERS[1]) * u64::from(counter[2]);
        counter = [
            (product1 >> 32) as u32 ^ counter[1] ^ key[0],
            product1 as u32,
            (product0 >> 32) as u32 ^ counter[3] ^ key[1],
            product0 as u32,
        ];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

/// The random numbers of one instruction.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    seed: u64,
    instruction: u64,
}

impl Stream {
    pub fn new(seed: u64, instruction: u64) -> Stream {
        Stream { seed, instruction }
    }

    /// Four words for element `index`.
    fn words(&self, index: u64) -> [u32; 4] {
        let split = |value: u64| [value as u32, (value >> 32) as u32];
        let ([i0, i1], [n0, n1]) = (split(index), split(self.instruction));
        philox([i0, i1, n0, n1], split(self.seed))
    }

    /// Uniform on `[0, 1)` with 53 random bits.
    pub fn uniform_f64(&self, index: u64) -> f64 {
        let words = self.words(index);
        let bits = u64::from(words[0]) << 21 ^ u64::from(words[1]) >> 11;
        bits as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform on `[0, 1)` with 24 random bits, exact in float32.
    pub fn uniform_f32(&self, index: u64) -> f32 {
        (self.words(index)[0] >> 8) as f32 * (1.0 / (1u32 << 24) as f32)
    }

    /// Standard normal by the Box-Muller transform, computed in float64 with portable functions.
    pub fn normal(&self, index: u64) -> f64 {
        // A pair of elements shares one transform's two results.
        let words = self.words(index >> 1);
        let unit = |high: u32, low: u32| {
            let bits = u64::from(high) << 21 ^ u64::from(low) >> 11;
            (bits as f64 + 0.5) * (1.0 / (1u64 << 53) as f64)
        };
        let radius = (-2.0 * libm::log(unit(words[0], words[1]))).sqrt();
        let angle = std::f64::consts::TAU * unit(words[2], words[3]);
        radius * if index & 1 == 0 { libm::cos(angle) } else { libm::sin(angle) }
    }

    /// Uniform on `low..high`; `high` must be above `low`.
    pub fn integer(&self, index: u64, low: i64, high: i64) -> i64 {
        let words = self.words(index);
        let word = u64::from(words[0]) << 32 | u64::from(words[1]);
        let span = high.wrapping_sub(low) as u64;
        // Multiply-shift: for any span below 2^40 the bias is under 2^-24.
        let offset = (u128::from(word) * u128::from(span)) >> 64;
        low.wrapping_add(offset as i64)
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

    #[test]
    fn moments_are_right() {
        let stream = Stream::new(7, 3);
        let n = 100_000;
        let mean = (0..n).map(|i| stream.normal(i)).sum::<f64>() / n as f64;
        let square = (0..n).map(|i| stream.normal(i).powi(2)).sum::<f64>() / n as f64;
        let uniform = (0..n).map(|i| stream.uniform_f64(i)).sum::<f64>() / n as f64;
        assert!(mean.abs() < 0.01 && (square - 1.0).abs() < 0.02, "{mean} {square}");
        assert!((uniform - 0.5).abs() < 0.005, "{uniform}");
    }

    #[test]
    fn integers_stay_in_range() {
        let stream = Stream::new(1, 2);
        assert!((0..1000).all(|i| (-3..5).contains(&stream.integer(i, -3, 5))));
        assert!((0..1000).any(|i| stream.integer(i, -3, 5) == 4));
    }
}
