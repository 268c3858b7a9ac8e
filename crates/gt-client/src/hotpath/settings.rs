//! Settings and counters of the detector.

use crate::environment;

/// The least number of repetitions after which a sequence is hot.
pub(super) const MIN_REPETITIONS: u64 = 3;

/// When sequences become hot paths.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Whether the detector is enabled.
    pub enabled: bool,
    /// The number of repetitions before a sequence is hot.
    pub threshold: u32,
    /// Whether engines compile hot paths even if that may not help.
    pub compile: bool,
}

impl Settings {
    /// Returns the settings in GT_AUTO_COMPILE, GT_COMPILE and GT_HOTPATH_THRESHOLD.
    pub fn from_env() -> Settings {
        let compile = environment::switch("GT_COMPILE") == Some(true);
        let enabled = compile || environment::switch("GT_AUTO_COMPILE") != Some(false);
        let threshold = environment::count("GT_HOTPATH_THRESHOLD").unwrap_or(MIN_REPETITIONS);
        if threshold < MIN_REPETITIONS {
            tracing::warn!(
                "GT_HOTPATH_THRESHOLD is {threshold}, expected {MIN_REPETITIONS} or more: \
                 {MIN_REPETITIONS} is used"
            );
        }
        let threshold = threshold.clamp(MIN_REPETITIONS, u64::from(u32::MAX)) as u32;
        Settings { enabled, threshold, compile }
    }
}

/// Counters of a detector.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct HotPathStats {
    /// Instructions so far, and the number of them that were sent as part of invocations.
    pub total_instructions: u64,
    pub hot_instructions: u64,
    /// Templates ever made, and templates at present.
    pub unique_sequences: u64,
    pub hot_sequences: u64,
    /// Complete iterations.
    pub repetitions: u64,
    pub hot_threshold: u32,
}
