//! Limits on a session's lineage.

use std::time::Duration;

/// Limits on what is stored of a session's stream before a snapshot replaces it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineageLimits {
    /// The bytes of the stream.
    pub bytes: u64,
    /// The bytes of all sessions' streams, of which each session may use an equal part.
    pub total: u64,
    /// The device time that replaying the stream takes.
    pub time: Duration,
    /// The bytes of a slot's values that the dispatcher stores if no worker can.
    pub kept: u64,
}

impl Default for LineageLimits {
    fn default() -> LineageLimits {
        LineageLimits {
            bytes: 256 << 20,
            total: 4 << 30,
            time: Duration::from_secs(5),
            kept: 64 << 20,
        }
    }
}
