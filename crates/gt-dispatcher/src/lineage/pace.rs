//! How often snapshots of a session are taken.

use std::time::Duration;

/// The device time after which a snapshot is taken if it costs next to nothing.
pub(super) const OFTEN: Duration = Duration::from_millis(250);
/// A snapshot costs at most one part in this many of the time between two, as far as
/// [`super::LineageLimits::time`] allows.
const PART: u32 = 40;
/// The pause between two snapshots.
const PAUSE: Duration = Duration::from_millis(20);
/// The pause after a worker has dropped a snapshot for lack of memory.
const REST: Duration = Duration::from_secs(60);
/// The bytes that a worker stores in a second: a low estimate.
const BYTES_PER_SECOND: u64 = 500_000_000;

/// When the last snapshot was taken, and what it cost.
#[derive(Default)]
pub(super) struct Pace {
    /// The session's device time at the last snapshot, in nanoseconds, and when it was attempted.
    device: u64,
    tried: Duration,
    /// How many attempts have failed since the last complete snapshot.
    fails: u32,
    /// The estimated duration of the last snapshot.
    cost: Duration,
    /// No snapshot is attempted before this time.
    rest: Duration,
}

impl Pace {
    /// Returns whether a snapshot may be attempted.
    pub fn allows(&self, now: Duration) -> bool {
        now >= self.rest.max(self.tried + PAUSE * (1 << self.fails.min(8)))
    }

    /// Returns whether the device time used since the last snapshot makes another due, which it is
    /// after `most` at the latest.
    pub fn is_due(&self, device: u64, most: Duration) -> bool {
        let used = Duration::from_nanos(device.saturating_sub(self.device));
        used >= (self.cost * PART).clamp(OFTEN.min(most), most)
    }

    /// Returns when the next snapshot may be attempted for a reason that arose at `since`. `None`
    /// after a failure: then it is attempted as the session's commands are planned and done.
    pub fn next(&self, since: Duration) -> Option<Duration> {
        (self.fails == 0).then(|| since.max(self.tried + PAUSE).max(self.rest))
    }

    /// Registers an attempt to take a snapshot.
    pub fn try_at(&mut self, now: Duration) {
        self.tried = now;
    }

    /// Registers the beginning of a snapshot, of a session that has used this device time.
    pub fn begin(&mut self, device: u64) {
        self.device = device;
    }

    /// Registers a failed snapshot.
    pub fn fail(&mut self) {
        self.fails += 1;
    }

    /// Delays the next snapshot, after a worker has dropped one for lack of memory.
    pub fn rest(&mut self, now: Duration) {
        self.rest = now + REST;
    }

    /// Registers a complete snapshot, of which each worker stores up to this number of bytes.
    pub fn complete(&mut self, bytes: u64) {
        self.cost = Duration::from_secs_f64(bytes as f64 / BYTES_PER_SECOND as f64);
        self.fails = 0;
    }
}
