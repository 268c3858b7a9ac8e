//! Random numbers computed from random words, with the same bits on every engine and machine.
//!
//! Four words yield four float32 or two float64 numbers. Normal numbers use the Box-Muller
//! transform ("A Note on the Generation of Random Normal Deviates", 1958), computed by additions,
//! products and square roots in the result's dtype, each rounded separately: an engine must not use
//! fused multiply-add. The polynomials are those of Cephes (Moshier); the float64 logarithm is that
//! of fdlibm, with a division.

/// Uniform on `[0, 1)`, with 24 random bits.
#[inline(always)]
pub fn uniforms_f32([a, b, c, d]: [u32; 4]) -> [f32; 4] {
    let uniform = |word: u32| (word >> 8) as i32 as f32 * (1.0 / (1u32 << 24) as f32);
    [uniform(a), uniform(b), uniform(c), uniform(d)]
}

/// Uniform on `[0, 1)`, with 53 random bits.
#[inline(always)]
pub fn uniforms_f64([a, b, c, d]: [u32; 4]) -> [f64; 2] {
    let uniform = |high, low| bits53(high, low) * (1.0 / (1u64 << 53) as f64);
    [uniform(a, b), uniform(c, d)]
}

/// Uniform on `0..span`. The bias of a product's upper half is below 2^-24 for spans below 2^40.
#[inline(always)]
pub fn below([a, b, c, d]: [u32; 4], span: u64) -> [u64; 2] {
    let share = |high, low| {
        let word = u64::from(high) << 32 | u64::from(low);
        ((u128::from(word) * u128::from(span)) >> 64) as u64
    };
    [share(a, b), share(c, d)]
}

/// The same as [`below`], for spans below 2^32, in 64 bits.
#[inline(always)]
pub fn below_narrow([a, b, c, d]: [u32; 4], span: u32) -> [u64; 2] {
    let span = u64::from(span);
    let share = |high, low| (u64::from(high) * span + ((u64::from(low) * span) >> 32)) >> 32;
    [share(a, b), share(c, d)]
}

/// Standard normal, in float32.
#[inline(always)]
pub fn normals_f32([a, b, c, d]: [u32; 4]) -> [f32; 4] {
    let ([p, q], [r, s]) = (pair_f32(a, b), pair_f32(c, d));
    [p, q, r, s]
}

/// Standard normal, in float64.
#[inline(always)]
pub fn normals_f64([a, b, c, d]: [u32; 4]) -> [f64; 2] {
    let unit = (bits53(a, b) + 0.5) * (1.0 / (1u64 << 53) as f64);
    let radius = (-2.0 * log_f64(unit)).sqrt();
    // The upper two bits of `c` choose the quarter of the circle; the rest and `d`, the angle in
    // it.
    let place = bits53(c << 2, d) - (1u64 << 52) as f64;
    let x = place * (std::f64::consts::FRAC_PI_4 / (1u64 << 52) as f64);
    let (sine, cosine) = (sin_f64(x), cos_f64(x));
    let cosine = if c >> 31 == 1 { -cosine } else { cosine };
    let swapped = c >> 30 & 1 == 1;
    let (first, second) = if swapped { (sine, cosine) } else { (cosine, sine) };
    [radius * first, radius * second]
}

/// Returns the upper 53 of 64 bits as a number.
#[inline(always)]
fn bits53(high: u32, low: u32) -> f64 {
    (u64::from(high) << 21 | u64::from(low) >> 11) as i64 as f64
}

/// Returns two normal numbers, with the radius from one word and the angle from the other. Two bits
/// of the angle choose a quarter of the circle, centred on an axis, and 30 the position in it.
#[inline(always)]
fn pair_f32(a: u32, b: u32) -> [f32; 2] {
    let unit = ((a >> 1) as i32 as f32 + 0.5) * (1.0 / (1u32 << 31) as f32);
    let radius = (-2.0 * log_f32(unit)).sqrt();
    let x = (b << 2) as i32 as f32 * (std::f32::consts::FRAC_PI_4 / (1u32 << 31) as f32);
    let z = x * x;
    let sine = ((-1.951_529_6e-4 * z + 8.332_161e-3) * z - 0.166_666_55) * z * x + x;
    let cosine =
        ((2.443_315_7e-5 * z - 1.388_731_6e-3) * z + 4.166_664_6e-2) * z * z - 0.5 * z + 1.0;
    let cosine = f32::from_bits(cosine.to_bits() ^ b & 0x8000_0000);
    let swapped = b & 0x4000_0000 != 0;
    let (first, second) = if swapped { (sine, cosine) } else { (cosine, sine) };
    [radius * first, radius * second]
}

/// Returns the natural logarithm of a positive number that is not subnormal.
#[inline(always)]
fn log_f32(x: f32) -> f32 {
    // x = 2^n m, with m between the square roots of 1/2 and 2.
    let n = x.to_bits().wrapping_sub(0x3f35_04f3) as i32 >> 23;
    let m = f32::from_bits(x.to_bits().wrapping_sub((n << 23) as u32));
    let (r, n) = (m - 1.0, n as f32);
    let z = r * r;
    let mut p = 7.037_683_6e-2f32;
    for term in [
        -1.151_461e-1,
        1.167_699_9e-1,
        -1.242_014_1e-1,
        1.424_932_3e-1,
        -1.666_805_8e-1,
        2.000_071_5e-1,
        -2.499_999_4e-1,
        3.333_333e-1,
    ] {
        p = p * r + term;
    }
    // ln 2 in two parts, of which the first times n is exact.
    p * r * z + n * -2.121_944_4e-4 - 0.5 * z + r + n * 0.693_359_4
}

/// Returns the natural logarithm of a positive number that is not subnormal.
#[inline(always)]
fn log_f64(x: f64) -> f64 {
    let n = x.to_bits().wrapping_sub(0x3fe6_a09e_667f_3bcd) as i64 >> 52;
    let m = f64::from_bits(x.to_bits().wrapping_sub((n << 52) as u64));
    let (f, n) = (m - 1.0, n as i32 as f64);
    let s = f / (2.0 + f);
    let (z, half) = (s * s, 0.5 * f * f);
    let mut p = 1.479_819_860_511_658_6e-1;
    for term in [
        1.531_383_769_920_937_3e-1,
        1.818_357_216_161_805e-1,
        2.222_219_843_214_978_4e-1,
        2.857_142_874_366_239e-1,
        3.999_999_999_940_942e-1,
        6.666_666_666_666_735e-1,
    ] {
        p = p * z + term;
    }
    n * 6.931_471_803_691_238e-1
        - (half - (s * (half + p * z) + n * 1.908_214_929_270_587_7e-10) - f)
}

/// Returns the sine of an angle between -pi / 4 and pi / 4.
#[inline(always)]
fn sin_f64(x: f64) -> f64 {
    let z = x * x;
    let mut p = 1.589_623_015_765_465_7e-10;
    for term in [
        -2.505_074_776_285_780_7e-8,
        2.755_731_362_138_572_5e-6,
        -1.984_126_982_958_954e-4,
        8.333_333_333_322_118e-3,
        -1.666_666_666_666_663e-1,
    ] {
        p = p * z + term;
    }
    p * z * x + x
}

/// Returns the cosine of an angle between -pi / 4 and pi / 4.
#[inline(always)]
fn cos_f64(x: f64) -> f64 {
    let z = x * x;
    let mut p = -1.135_853_652_138_768_2e-11;
    for term in [
        2.087_570_084_197_473e-9,
        -2.755_731_417_929_674e-7,
        2.480_158_728_885_17e-5,
        -1.388_888_888_887_305_6e-3,
        4.166_666_666_666_659e-2,
    ] {
        p = p * z + term;
    }
    p * z * z - 0.5 * z + 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_exact_to_a_few_units() {
        for i in 1..100_000 {
            let x = f64::from(i) / 100_000.0;
            let close = |given: f64, right: f64, error: f64| {
                assert!((given - right).abs() <= error * right.abs(), "{x}: {given} {right}");
            };
            close(log_f64(x), x.ln(), 4e-16);
            let rounded = x as f32;
            close(f64::from(log_f32(rounded)), f64::from(rounded).ln(), 3e-7);
            let angle = x * std::f64::consts::FRAC_PI_4;
            close(sin_f64(angle), angle.sin(), 4e-16);
            close(cos_f64(angle), angle.cos(), 4e-16);
        }
    }

    /// The smallest and the largest words yield finite numbers.
    #[test]
    fn the_largest_and_the_smallest() {
        for word in [0, 1, u32::MAX >> 1, u32::MAX, 1 << 31, 1 << 30] {
            for angle in [0, 1 << 29, 1 << 30, u32::MAX] {
                let words = [word, angle, word, angle];
                assert!(normals_f32(words).iter().all(|x| x.abs() < 6.7), "{words:?}");
                let words = [word, word, angle, angle];
                assert!(normals_f64(words).iter().all(|x| x.abs() < 8.7), "{words:?}");
            }
        }
        assert_eq!(log_f32(1.0), 0.0);
        assert_eq!(uniforms_f32([u32::MAX; 4])[0], 1.0 - f32::EPSILON / 2.0);
        assert!(uniforms_f64([u32::MAX; 4])[0] < 1.0);
    }

    /// The angles cover all four quadrants, and the squared coordinates add up to the squared
    /// radius.
    #[test]
    fn angles_go_around() {
        for turn in 0..64u32 {
            let [x, y] = pair_f32(1 << 30, turn << 26);
            let radius = -2.0 * log_f32(0.25);
            assert!((x * x + y * y - radius).abs() < 1e-5);
        }
        let signs = (0..64u32).map(|turn| pair_f32(1 << 30, turn << 26).map(f32::is_sign_negative));
        for wanted in [[false, false], [false, true], [true, false], [true, true]] {
            assert_eq!(signs.clone().filter(|signs| *signs == wanted).count(), 16);
        }
    }

    #[test]
    fn narrow_spans_give_the_same() {
        for span in [1, 2, 10, 1000, u32::MAX] {
            for i in 0..100u32 {
                let words =
                    [1, 7, 13, 29].map(|by: u32| i.wrapping_mul(by.wrapping_mul(0x9E37_79B9)));
                assert_eq!(below(words, u64::from(span)), below_narrow(words, span));
            }
        }
    }
}
