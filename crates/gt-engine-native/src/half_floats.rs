//! Conversions between float16 and float32. Processors have instructions for these, which compilers
//! do not select by themselves.

use std::mem::MaybeUninit;

use half::f16;
use half::slice::HalfFloatSliceExt;

/// Numbers converted at a time: a vector of float32 on most machines.
const LANES: usize = 8;

/// Converts float16 to float32.
pub fn widen(from: &[f16], to: &mut [MaybeUninit<f32>]) {
    #[cfg(target_arch = "x86_64")]
    if crate::simd::level() >= crate::simd::InstructionSet::V3 {
        // SAFETY: the level has these features.
        return unsafe { x86::widen(from, to) };
    }
    by_lanes(from, to, |from| {
        let mut to = [0.0; LANES];
        from.convert_to_f32_slice(&mut to);
        to
    });
}

/// Converts float32 to float16.
pub fn narrow(from: &[f32], to: &mut [MaybeUninit<f16>]) {
    #[cfg(target_arch = "x86_64")]
    if crate::simd::level() >= crate::simd::InstructionSet::V3 {
        // SAFETY: the level has these features.
        return unsafe { x86::narrow(from, to) };
    }
    by_lanes(from, to, |from| {
        let mut to = [f16::ZERO; LANES];
        to.convert_from_f32_slice(&from);
        to
    });
}

/// Converts [`LANES`] numbers at a time; the last ones are padded with zeros.
#[inline(always)]
fn by_lanes<A: bytemuck::Pod, B: Copy>(
    from: &[A],
    to: &mut [MaybeUninit<B>],
    convert: impl Fn([A; LANES]) -> [B; LANES],
) {
    assert!(from.len() == to.len());
    let write = |to: &mut [MaybeUninit<B>], values: [B; LANES]| {
        for (to, value) in to.iter_mut().zip(values) {
            to.write(value);
        }
    };
    let (whole, rest) = from.as_chunks::<LANES>();
    let (whole_to, rest_to) = to.as_chunks_mut::<LANES>();
    for (from, to) in whole.iter().zip(whole_to) {
        write(to, convert(*from));
    }
    if !rest.is_empty() {
        let mut last = [A::zeroed(); LANES];
        last[..rest.len()].copy_from_slice(rest);
        write(rest_to, convert(last));
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{_MM_FROUND_TO_NEAREST_INT, _mm256_cvtph_ps, _mm256_cvtps_ph};

    use super::{MaybeUninit, by_lanes, f16};

    #[target_feature(enable = "avx,f16c")]
    pub fn widen(from: &[f16], to: &mut [MaybeUninit<f32>]) {
        by_lanes(
            from,
            to,
            #[inline(always)]
            |from| bytemuck::cast(_mm256_cvtph_ps(bytemuck::cast(from))),
        );
    }

    #[target_feature(enable = "avx,f16c")]
    pub fn narrow(from: &[f32], to: &mut [MaybeUninit<f16>]) {
        by_lanes(
            from,
            to,
            #[inline(always)]
            |from| {
                bytemuck::cast(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(bytemuck::cast(from)))
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_float16_survives_a_round_trip() {
        let all: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
        for count in [0, 1, 7, 8, 9, all.len()] {
            let all = &all[all.len() - count..];
            let mut wide = vec![MaybeUninit::new(0.0); count];
            widen(all, &mut wide);
            // SAFETY: initialized when it was created.
            let wide: Vec<f32> = wide.iter().map(|x| unsafe { x.assume_init() }).collect();
            assert!(
                all.iter()
                    .zip(&wide)
                    .all(|(x, wide)| { x.to_f32() == *wide || x.is_nan() && wide.is_nan() })
            );
            let mut short = vec![MaybeUninit::new(f16::ZERO); count];
            narrow(&wide, &mut short);
            // SAFETY: as above.
            let short: Vec<f16> = short.iter().map(|x| unsafe { x.assume_init() }).collect();
            assert!(all.iter().zip(&short).all(|(x, short)| {
                x.to_bits() == short.to_bits() || x.is_nan() && short.is_nan()
            }));
        }
    }
}
