//! What a dispatcher has counted since it started, for monitoring systems.

use std::time::Duration;

use crate::record;

/// Counts of cluster events, and how long things took.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ClusterCounters {
    pub workers_joined: u64,
    /// Workers that ended as they had announced, and those that were lost.
    pub workers_left: u64,
    pub workers_lost: u64,
    /// Moves of slots from one worker to another, and the bytes that these had in snapshots.
    pub moves: u64,
    pub moved_bytes: u64,
    /// Sessions that were ended by the server, an operator or a lost connection.
    pub sessions_ended: u64,
    /// Sessions that lost tensors for good.
    pub tensors_lost: u64,
    /// Commands that are not tried again, as workers died of them.
    pub commands_given_up: u64,
    /// From the loss of a worker until a session is restored.
    pub recoveries: DurationHistogram,
    /// From when a value was asked for in a session's stream until a worker has sent it.
    pub value_waits: DurationHistogram,
    /// From when a batch of commands was received until it is planned.
    pub queue_waits: DurationHistogram,
}

record!(struct ClusterCounters {
    workers_joined, workers_left, workers_lost, moves, moved_bytes, sessions_ended, tensors_lost,
    commands_given_up, recoveries, value_waits, queue_waits,
});

/// How many durations were within each of some bounds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DurationHistogram {
    /// The durations above the bound before, up to this one; then those above all.
    pub counts: [u64; BOUNDS.len() + 1],
    pub sum: Duration,
}

record!(struct DurationHistogram { counts, sum });

/// The bounds, in microseconds: from a tenth of a millisecond to a quarter of an hour.
pub const BOUNDS: [u64; 15] = [
    100,
    250,
    1_000,
    2_500,
    10_000,
    25_000,
    100_000,
    250_000,
    1_000_000,
    2_500_000,
    10_000_000,
    30_000_000,
    60_000_000,
    300_000_000,
    900_000_000,
];

impl Default for DurationHistogram {
    fn default() -> DurationHistogram {
        DurationHistogram { counts: [0; BOUNDS.len() + 1], sum: Duration::ZERO }
    }
}

impl DurationHistogram {
    /// Counts a duration.
    #[inline]
    pub fn add(&mut self, duration: Duration) {
        let micros = duration.as_micros() as u64;
        let place = BOUNDS.iter().position(|bound| micros <= *bound).unwrap_or(BOUNDS.len());
        self.counts[place] += 1;
        self.sum = self.sum.saturating_add(duration);
    }

    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_within_the_next_bound() {
        let mut histogram = DurationHistogram::default();
        for micros in [0, 100, 101, 900_000_000, 900_000_001] {
            histogram.add(Duration::from_micros(micros));
        }
        let counts = histogram.counts;
        assert_eq!((counts[0], counts[1], counts[14], counts[15]), (2, 1, 1, 1));
        assert_eq!((histogram.count(), histogram.sum.as_secs()), (5, 1800));
        assert!(BOUNDS.is_sorted());
    }
}
