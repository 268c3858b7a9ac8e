//! Instruction sets: loops are compiled for several x86-64 instruction sets and selected at run
//! time, so that one binary runs on every x86-64 processor and uses its vectors.
//!
//! [`vectorized`] runs a loop, [`level`] is the instruction set in use, and [`limit`] lowers it for
//! tests. This crate depends on no other; `gt-engine-native` and `gt-linalg` use it.

use std::sync::atomic::{AtomicU8, Ordering};

/// An instruction set that loops are compiled for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum InstructionSet {
    /// The baseline of the architecture.
    Base = 1,
    /// AVX2 and FMA (x86-64-v3).
    V3 = 2,
    /// AVX-512 (x86-64-v4).
    V4 = 3,
}

static LEVEL: AtomicU8 = AtomicU8::new(0);

/// Returns the best instruction set of this machine, or a lower one set by [`limit`].
#[inline]
pub fn level() -> InstructionSet {
    match LEVEL.load(Ordering::Relaxed) {
        1 => InstructionSet::Base,
        2 => InstructionSet::V3,
        3 => InstructionSet::V4,
        _ => {
            let level = detect();
            LEVEL.store(level as u8, Ordering::Relaxed);
            level
        }
    }
}

/// Limits the instruction set for the whole process, for tests and comparisons.
pub fn limit(level: InstructionSet) {
    LEVEL.store(level.min(detect()) as u8, Ordering::Relaxed);
}

#[cfg(target_arch = "x86_64")]
fn detect() -> InstructionSet {
    macro_rules! has {
        ($($feature:tt),*) => { $(is_x86_feature_detected!($feature))&&* };
    }
    if !has!("avx2", "fma", "bmi1", "bmi2", "f16c", "lzcnt", "popcnt") {
        InstructionSet::Base
    } else if !has!("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl") {
        InstructionSet::V3
    } else {
        InstructionSet::V4
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> InstructionSet {
    InstructionSet::Base
}

/// Runs a loop compiled for the machine's instruction set. The closure needs `#[inline(always)]`,
/// or it is compiled only once, for the baseline.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
pub fn vectorized<R>(body: impl FnOnce() -> R) -> R {
    #[target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt")]
    fn v3<R>(body: impl FnOnce() -> R) -> R {
        body()
    }

    #[target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt")]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
    fn v4<R>(body: impl FnOnce() -> R) -> R {
        body()
    }

    match level() {
        InstructionSet::Base => body(),
        // SAFETY: `detect` has found the features of this level.
        InstructionSet::V3 => unsafe { v3(body) },
        // SAFETY: as above.
        InstructionSet::V4 => unsafe { v4(body) },
    }
}

/// Runs a loop. This architecture has only the base level.
#[inline(always)]
#[cfg(not(target_arch = "x86_64"))]
pub fn vectorized<R>(body: impl FnOnce() -> R) -> R {
    body()
}
