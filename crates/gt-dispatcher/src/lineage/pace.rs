//! How often snapshots of a session are taken.

use std::time::Duration;

/// The device time after which a snapshot is taken, if it costs next to nothing.
pub(super) const OFTEN: Duration = Duration::from_millis(250);
/// A snapshot costs at most a so-manieth part of the time between two, as far as
/// [`super::LineageLimits::time`] allows.
const PART: u32 = 40;
/// Within this time of the last snapshot no other is tried.
const PAUSE: Duration = Duration::from_millis(20);
/// How long none is tried after a worker has dropped one, as it needed the memory.
const REST: Duration = Duration::from_secs(60);
/// The bytes that a worker keeps in a second, by an estimate from below.
const BYTES_PER_SECOND: u64 = 500_000_000;

/// When the last snapshot was taken, and what it cost.
#[derive(Default)]
pub(super) struct Pace {
    /// The session's device time at the last snapshot, and when it was tried.
    device: u64,
    tried: Duration,
    /// How many have failed since the last that is complete.
    fails: u32,
    /// What the last one cost.
    cost: Duration,
    /// None is tried before.
    rest: Duration,
}

impl Pace {
    /// Whether one may be tried.
    pub fn allows(&self, now: Duration) -> bool {
        now >= self.rest.max(self.tried + PAUSE * (1 << self.fails.min(8)))
    }

    /// Whether so much device time was used since the last that another is due, which at the latest
    /// is after `most`.
    pub fn is_due(&self, device: u64, most: Duration) -> bool {
        let used = Duration::from_nanos(device.saturating_sub(self.device));
        used >= (self.cost * PART).clamp(OFTEN.min(most), most)
    }

    /// When the next may be tried after one at `since`. None after a failure: then it is tried when
    /// the session goes on.
    pub fn next(&self, since: Duration) -> Option<Duration> {
        (self.fails == 0).then(|| since.max(self.tried + PAUSE).max(self.rest))
    }

    pub fn try_at(&mut self, now: Duration) {
        self.tried = now;
    }

    pub fn begin(&mut self, device: u64) {
        self.device = device;
    }

    pub fn fail(&mut self) {
        self.fails += 1;
    }

    pub fn rest(&mut self, now: Duration) {
        self.rest = now + REST;
    }

    /// One is complete, of which a worker keeps so many bytes.
    pub fn complete(&mut self, bytes: u64) {
        self.cost = Duration::from_secs_f64(bytes as f64 / BYTES_PER_SECOND as f64);
        self.fails = 0;
    }
}
