//! How much is kept of a session.

use std::time::Duration;

/// How much of a session's stream is kept before its values are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineageLimits {
    /// The bytes of the stream.
    pub bytes: u64,
    /// Those of all sessions' streams: each keeps its part at most.
    pub total: u64,
    /// The device time that it takes to compute it again.
    pub time: Duration,
    /// The bytes of a slot's values that the driver keeps if no worker can.
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
