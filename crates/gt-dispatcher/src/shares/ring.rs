//! Device time over the last ten minutes, in buckets of a second.

use std::collections::VecDeque;
use std::time::Duration;

use gt_ir::status::{WINDOWS, WindowUse};

/// The length of a bucket, in nanoseconds.
pub(super) const BUCKET: u64 = 1_000_000_000;

/// The number of buckets: the longest window.
pub(super) const BUCKETS: usize = WINDOWS[WINDOWS.len() - 1].1.as_secs() as usize;

/// Nanoseconds of device time in one bucket.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Bucket {
    entitled: u64,
    used: u64,
}

impl Bucket {
    /// Returns the sum of two buckets. It saturates: a worker may report any time.
    fn plus(self, other: Bucket) -> Bucket {
        Bucket {
            entitled: self.entitled.saturating_add(other.entitled),
            used: self.used.saturating_add(other.used),
        }
    }
}

/// The device time of one session, or of a user's ended sessions: a ring of [`BUCKETS`] buckets.
/// Times are nanoseconds since the dispatcher started.
#[derive(Clone, Default)]
pub(super) struct Ring {
    /// The last of these is bucket `end - 1`; at most [`BUCKETS`].
    buckets: VecDeque<Bucket>,
    end: u64,
}

impl Ring {
    /// Adds device time of a bucket to which a session was entitled.
    pub fn add_entitled(&mut self, bucket: u64, time: u64) {
        if let Some(bucket) = self.bucket(bucket) {
            bucket.entitled = bucket.entitled.saturating_add(time);
        }
    }

    /// Adds device time that was used until `now`. What is longer than the part of the bucket
    /// before `now` was used in earlier buckets.
    pub fn add_used(&mut self, now: u64, time: u64) {
        let (mut until, mut left) = (now.max(1), time);
        while left > 0 {
            let number = (until - 1) / BUCKET;
            // The time before the dispatcher started counts as part of the first bucket.
            let part = if number == 0 { left } else { left.min(until - number * BUCKET) };
            let Some(bucket) = self.bucket(number) else { return };
            bucket.used = bucket.used.saturating_add(part);
            left -= part;
            until = number * BUCKET;
        }
    }

    /// Returns a bucket by number, and drops those that are too old beside it; `None` if it is too
    /// old itself.
    fn bucket(&mut self, number: u64) -> Option<&mut Bucket> {
        if self.buckets.is_empty() || number >= self.end + BUCKETS as u64 {
            self.buckets.clear();
            self.buckets.push_back(Bucket::default());
            self.end = number + 1;
        }
        while self.end <= number {
            if self.buckets.len() == BUCKETS {
                self.buckets.pop_front();
            }
            self.buckets.push_back(Bucket::default());
            self.end += 1;
        }
        let age = (self.end - 1 - number) as usize;
        if age >= BUCKETS {
            return None;
        }
        while self.buckets.len() <= age {
            self.buckets.push_front(Bucket::default());
        }
        let index = self.buckets.len() - 1 - age;
        self.buckets.get_mut(index)
    }

    /// Adds the buckets of another ring.
    pub fn merge(&mut self, other: &Ring) {
        let first = other.end - other.buckets.len() as u64;
        for (number, from) in (first..).zip(&other.buckets) {
            if let Some(bucket) = self.bucket(number) {
                *bucket = bucket.plus(*from);
            }
        }
    }

    /// Returns whether no window at `now` has any of its buckets.
    pub fn is_expired(&self, now: u64) -> bool {
        self.end + BUCKETS as u64 <= now / BUCKET + 1
    }

    /// Returns the sums over the windows that end at `now`. A window includes the bucket of `now`,
    /// so it is shorter than its length by less than a bucket.
    pub fn windows(&self, now: u64) -> [WindowUse; WINDOWS.len()] {
        WINDOWS.map(|(_, length)| self.window(now, length))
    }

    fn window(&self, now: u64, length: Duration) -> WindowUse {
        let first = (now / BUCKET + 1).saturating_sub(length.as_secs());
        let count = self.end.saturating_sub(first).min(self.buckets.len() as u64) as usize;
        let within = self.buckets.range(self.buckets.len() - count..);
        let sum = within.fold(Bucket::default(), |sum, bucket| sum.plus(*bucket));
        WindowUse {
            entitled: Duration::from_nanos(sum.entitled),
            used: Duration::from_nanos(sum.used),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn used(ring: &Ring, now: u64) -> [u64; 3] {
        ring.windows(now).map(|window| window.used.as_nanos() as u64)
    }

    #[test]
    fn a_long_operation_was_used_in_the_seconds_before_its_report() {
        let mut ring = Ring::default();
        ring.add_used(30 * SECOND + SECOND / 2, 30 * SECOND);
        let now = 30 * SECOND + SECOND / 2;
        assert_eq!(used(&ring, now), [9 * SECOND + SECOND / 2, 30 * SECOND, 30 * SECOND]);
        assert_eq!(used(&ring, 65 * SECOND), [0, 25 * SECOND - SECOND / 2, 30 * SECOND]);
        assert_eq!(used(&ring, 2000 * SECOND), [0; 3]);
        assert!(!ring.is_expired(600 * SECOND) && ring.is_expired(631 * SECOND));
    }

    #[test]
    fn no_report_overflows() {
        let mut ring = Ring::default();
        ring.add_used(SECOND, u64::MAX);
        ring.add_used(SECOND, u64::MAX);
        ring.add_used(700 * SECOND, u64::MAX);
        let mut twice = ring.clone();
        twice.merge(&ring);
        assert_eq!(used(&twice, 700 * SECOND)[0], 2 * 9 * SECOND);
    }

    #[test]
    fn what_was_used_before_the_start_counts_as_used_after_it() {
        let mut ring = Ring::default();
        ring.add_used(0, 5);
        ring.add_used(SECOND, 3 * SECOND);
        assert_eq!(used(&ring, SECOND), [3 * SECOND + 5; 3]);
    }

    proptest! {
        /// The sum over a window is the sum of what was added in it, whatever the order; the ring
        /// never grows beyond its buckets.
        #[test]
        fn windows_are_sums(
            added in prop::collection::vec((0u64..2000, 0u64..1000, any::<bool>()), 0..200),
            split in 0usize..200,
            later in 0u64..700,
        ) {
            let mut parts = [Ring::default(), Ring::default()];
            for (index, (second, time, is_use)) in added.iter().enumerate() {
                let ring = &mut parts[usize::from(index < split)];
                match is_use {
                    // Shorter than the time since the bucket began.
                    true => ring.add_used(second * SECOND + SECOND / 2, *time),
                    false => ring.add_entitled(*second, *time),
                }
                prop_assert!(ring.buckets.len() <= BUCKETS);
            }
            let latest = added.iter().map(|(second, ..)| *second).max().unwrap_or(0);
            let now = (latest + later) * SECOND;
            let [mut all, other] = parts;
            all.merge(&other);
            prop_assert!(all.buckets.len() <= BUCKETS);
            for ((_, length), window) in WINDOWS.into_iter().zip(all.windows(now)) {
                let within = |second: u64| second + length.as_secs() > latest + later;
                let sum = |uses: bool| -> u64 {
                    let of = added.iter().filter(|(second, _, is)| *is == uses && within(*second));
                    of.map(|(_, time, _)| time).sum()
                };
                prop_assert_eq!(window.used.as_nanos() as u64, sum(true));
                prop_assert_eq!(window.entitled.as_nanos() as u64, sum(false));
            }
        }

        /// Time that is used until now is in no window more than the window is long, and in all
        /// that are long enough it is complete.
        #[test]
        fn a_use_is_as_long_as_it_was(now in 0u64..1_000_000_000_000, length in 1u64..700_000_000_000) {
            let length = length.min(now);
            let mut ring = Ring::default();
            ring.add_used(now, length);
            for ((_, window), told) in WINDOWS.into_iter().zip(used(&ring, now)) {
                let covered = (window.as_secs() - 1) * SECOND + now % SECOND;
                prop_assert_eq!(told, length.min(covered));
            }
        }
    }
}
