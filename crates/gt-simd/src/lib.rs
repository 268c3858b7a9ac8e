//! One binary for every x86-64: loops are compiled three times and chosen at run time.

use std::sync::atomic::{AtomicU8, Ordering};

/// The instruction sets that loops are compiled for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum InstructionSet {
    /// What every processor of the architecture has.
    Base = 1,
    /// AVX2 and FMA (x86-64-v3).
    V3 = 2,
    /// AVX-512 (x86-64-v4).
    V4 = 3,
}

static LEVEL: AtomicU8 = AtomicU8::new(0);

/// Return the best level of this machine.
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

/// Uses no level above `level`, in the whole process: for tests and comparisons.
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

/// Runs a loop as compiled for the machine's level. Write the closure with `#[inline(always)]`,
/// or it is compiled but once, for the lowest level.
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
        // SAFETY: the level is one that `detect` found the features of.
        InstructionSet::V3 => unsafe { v3(body) },
        // SAFETY: as above.
        InstructionSet::V4 => unsafe { v4(body) },
    }
}

/// Runs a loop; on this architecture the base level is all there is.
#[inline(always)]
#[cfg(not(target_arch = "x86_64"))]
pub fn vectorized<R>(body: impl FnOnce() -> R) -> R {
    body()
}
