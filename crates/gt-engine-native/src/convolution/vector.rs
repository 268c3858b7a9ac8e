//! Vector registers of floats, for each level of instruction sets.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use super::ConvolutionFloat;

/// A vector register of floats.
pub trait Vector: Copy {
    type Item: ConvolutionFloat;

    const LANES: usize;

    /// # Safety
    /// As for all of these functions: the machine has such registers.
    unsafe fn splat(x: Self::Item) -> Self;

    /// # Safety
    /// `from` points to `LANES` readable elements, at any alignment.
    unsafe fn load(from: *const Self::Item) -> Self;

    /// # Safety
    /// `to` points to `LANES` writable elements, at any alignment, and no other thread accesses
    /// them.
    unsafe fn store(self, to: *mut Self::Item);

    /// Returns `self * y + z`.
    ///
    /// # Safety
    /// The machine has such registers.
    unsafe fn mul_add(self, y: Self, z: Self) -> Self;
}

/// The portable version: the compiler chooses the registers.
impl<T: ConvolutionFloat, const LANES: usize> Vector for [T; LANES] {
    type Item = T;

    const LANES: usize = LANES;

    #[inline(always)]
    unsafe fn splat(x: T) -> Self {
        [x; LANES]
    }

    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        // SAFETY: by the caller's guarantee.
        unsafe { from.cast::<Self>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // SAFETY: by the caller's guarantee.
        unsafe { to.cast::<Self>().write_unaligned(self) }
    }

    #[inline(always)]
    unsafe fn mul_add(self, y: Self, mut z: Self) -> Self {
        for lane in 0..LANES {
            z[lane] = z[lane] + self[lane] * y[lane];
        }
        z
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! vector {
    ($vector:ty, $item:ty, $splat:ident, $load:ident, $store:ident, $mul_add:ident) => {
        impl Vector for $vector {
            type Item = $item;

            const LANES: usize = size_of::<$vector>() / size_of::<$item>();

            #[inline(always)]
            unsafe fn splat(x: $item) -> Self {
                // SAFETY: by the caller's guarantee, here and below.
                unsafe { $splat(x) }
            }

            #[inline(always)]
            unsafe fn load(from: *const $item) -> Self {
                // SAFETY: as above.
                unsafe { $load(from) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $item) {
                // SAFETY: as above.
                unsafe { $store(to, self) }
            }

            #[inline(always)]
            unsafe fn mul_add(self, y: Self, z: Self) -> Self {
                // SAFETY: as above.
                unsafe { $mul_add(self, y, z) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
vector!(__m256, f32, _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_fmadd_ps);
#[cfg(target_arch = "x86_64")]
vector!(__m256d, f64, _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_fmadd_pd);
#[cfg(target_arch = "x86_64")]
vector!(__m512, f32, _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_fmadd_ps);
#[cfg(target_arch = "x86_64")]
vector!(__m512d, f64, _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_fmadd_pd);

/// The vector registers of each level.
pub trait Registers: Sized {
    type Base: Vector<Item = Self>;
    type V3: Vector<Item = Self>;
    type V4: Vector<Item = Self>;
}

#[cfg(target_arch = "x86_64")]
impl Registers for f32 {
    type Base = [f32; 4];
    type V3 = __m256;
    type V4 = __m512;
}

#[cfg(target_arch = "x86_64")]
impl Registers for f64 {
    type Base = [f64; 2];
    type V3 = __m256d;
    type V4 = __m512d;
}

#[cfg(not(target_arch = "x86_64"))]
impl Registers for f32 {
    type Base = [f32; 4];
    type V3 = [f32; 4];
    type V4 = [f32; 4];
}

#[cfg(not(target_arch = "x86_64"))]
impl Registers for f64 {
    type Base = [f64; 2];
    type V3 = [f64; 2];
    type V4 = [f64; 2];
}
