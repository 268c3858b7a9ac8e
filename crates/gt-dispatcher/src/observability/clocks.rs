//! Estimates the offset between the dispatcher's clock and each peer's.
//!
//! A probe's send and receive times bound the dispatcher's time at which the peer read its clock.
//! The intersection of several such intervals is narrow even if most round trips are slow.

use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::peer::PeerId;

/// The number of probes in a round: at least `AT_LEAST`, and up to `AT_MOST` while the error
/// exceeds [`WELL`].
const AT_LEAST: u32 = 8;
const AT_MOST: u32 = 32;
/// The error bound, in nanoseconds, at which an estimate is good.
const WELL: i64 = 200_000;
/// The pause before the next round, since clocks drift. While the estimate is not good, it is `SOON`
/// at first and doubles each time: on a busy machine all round trips are slow, and probes of many
/// peers would add to its work.
const AGAIN: Duration = Duration::from_secs(30);
const SOON: Duration = Duration::from_secs(1);
/// The drift allowed for during that pause, in nanoseconds.
const DRIFT: i64 = 1_000_000;

/// The clocks of the peers that emit events.
#[derive(Default)]
pub(crate) struct PeerClocks(FxHashMap<PeerId, PeerClock>);

/// A peer's clock.
#[derive(Debug)]
struct PeerClock {
    /// Bounds on how far the dispatcher's clock is ahead, in nanoseconds.
    low: i64,
    high: i64,
    /// The estimate of the previous round and its error bound.
    before: Option<(i64, i64)>,
    /// When this round began, its answers so far, and whether a probe is in flight.
    begun: Duration,
    answers: u32,
    is_asked: bool,
    /// The pause after this round, unless its estimate is good.
    pause: Duration,
}

impl PeerClock {
    fn new(now: Duration, before: Option<(i64, i64)>) -> PeerClock {
        PeerClock {
            low: i64::MIN,
            high: i64::MAX,
            before,
            begun: now,
            answers: 0,
            is_asked: false,
            pause: SOON,
        }
    }

    fn error(&self) -> i64 {
        self.high.saturating_sub(self.low)
    }

    /// Returns the best estimate and its error bound.
    fn best(&self) -> Option<(i64, i64)> {
        let found = (self.answers > 0).then(|| (self.low + self.error() / 2, self.error()));
        // A slow round trip may bound the offset less tightly than the previous round did.
        match (self.before, found) {
            (Some(before), Some(found)) => Some(if before.1 < found.1 { before } else { found }),
            (before, found) => found.or(before),
        }
    }

    fn is_enough(&self) -> bool {
        self.answers >= if self.error() <= WELL { AT_LEAST } else { AT_MOST }
    }
}

impl PeerClocks {
    /// Registers a probe to a peer.
    pub fn ask(&mut self, now: Duration, peer: PeerId) {
        let clock = self.0.entry(peer).or_insert_with(|| PeerClock::new(now, None));
        clock.is_asked = true;
    }

    /// Converts a time of a peer's clock to the dispatcher's. Peers without an estimate are taken
    /// to share the dispatcher's clock.
    pub fn translate(&self, peer: PeerId, here: Duration) -> Duration {
        let ahead = self.0.get(&peer).and_then(PeerClock::best).map_or(0, |(ahead, _)| ahead);
        Duration::from_nanos((here.as_nanos() as u64).saturating_add_signed(ahead))
    }

    /// Registers that a peer's clock showed `here` between `sent` and `now`. Returns whether to
    /// probe again.
    pub fn answer(&mut self, now: Duration, peer: PeerId, sent: Duration, here: Duration) -> bool {
        let Some(clock) = self.0.get_mut(&peer) else { return false };
        let ahead =
            |there: Duration| (there.as_nanos() as i64).wrapping_sub(here.as_nanos() as i64);
        clock.is_asked = false;
        clock.answers += 1;
        (clock.low, clock.high) = (clock.low.max(ahead(sent)), clock.high.min(ahead(now)));
        if clock.low > clock.high {
            // The clock was set, or is wrong: start over from this answer.
            (clock.low, clock.high) = (ahead(sent), ahead(now).max(ahead(sent)));
        }
        !clock.is_enough()
    }

    /// Begins a new round for the peers that are due, and returns them.
    pub fn due(&mut self, now: Duration) -> Vec<PeerId> {
        let mut due = Vec::new();
        for (peer, clock) in &mut self.0 {
            let is_good = clock.error() <= WELL;
            let pause = if is_good { AGAIN } else { clock.pause };
            if !clock.is_asked && now >= clock.begun + pause {
                let drifted = |(ahead, error): (i64, i64)| (ahead, error.saturating_add(DRIFT));
                let next = if is_good { SOON } else { (2 * clock.pause).min(AGAIN) };
                let begun = PeerClock::new(now, clock.best().map(drifted));
                *clock = PeerClock { pause: next, ..begun };
                due.push(*peer);
            }
        }
        due.sort_unstable();
        due
    }

    pub fn forget(&mut self, peer: PeerId) {
        self.0.remove(&peer);
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: PeerId = PeerId::client(7);

    fn micros(count: u64) -> Duration {
        Duration::from_micros(count)
    }

    /// Probes with these latencies there and back, in µs; the dispatcher's clock is 1 s ahead.
    fn asked(ways: &[(u64, u64)]) -> PeerClocks {
        let (mut clocks, mut now) = (PeerClocks::default(), micros(1_000_000));
        for (there, back) in ways {
            clocks.ask(now, PEER);
            let here = now + micros(*there) - micros(1_000_000);
            let sent = now;
            now += micros(there + back);
            clocks.answer(now, PEER, sent, here);
        }
        clocks
    }

    fn error_in_micros(clocks: &PeerClocks) -> i64 {
        let there = clocks.translate(PEER, micros(500)).as_micros() as i64;
        (there - 1_000_500).abs()
    }

    #[test]
    fn slow_answers_do_not_widen_the_bounds_of_fast_ones() {
        let ways = [(100, 100), (900_000, 50), (50, 900_000), (30_000, 30_000)];
        let clocks = asked(&ways);
        assert!(error_in_micros(&clocks) <= 100);
    }

    #[test]
    fn slow_answers_alone_bound_each_other() {
        let clocks = asked(&[(900_000, 20), (30, 900_000)]);
        assert!(error_in_micros(&clocks) <= 50);
    }

    #[test]
    fn a_clock_that_was_reset_is_measured_from_scratch() {
        let mut clocks = asked(&[(100, 100)]);
        let (sent, now) = (micros(2_000_000), micros(2_000_100));
        clocks.answer(now, PEER, sent, micros(50));
        assert!(clocks.translate(PEER, micros(50)).abs_diff(now) <= micros(100));
    }

    #[test]
    fn clocks_are_probed_until_accurate_and_again_later() {
        let mut clocks = asked(&[(10, 10); AT_LEAST as usize]);
        assert!(clocks.due(micros(1_001_000)).is_empty());
        assert_eq!(clocks.due(micros(1_000_000) + AGAIN), [PEER]);
        // The previous estimate is used until there is a better one.
        assert!(error_in_micros(&clocks) <= 10);
        let (sent, now) = (micros(40_000_000), micros(42_000_000));
        clocks.ask(sent, PEER);
        clocks.answer(now, PEER, sent, sent - micros(1_000_000));
        assert!(error_in_micros(&clocks) <= 10);
    }

    #[test]
    fn a_slow_peer_is_probed_again_soon_but_not_twice_at_once() {
        let mut clocks = asked(&[(10_000, 10_000)]);
        assert_eq!(clocks.due(micros(1_000_000) + SOON), [PEER]);
        clocks.ask(micros(2_100_000), PEER);
        assert!(clocks.due(micros(90_000_000)).is_empty());
    }

    #[test]
    fn a_peer_that_stays_slow_is_probed_less_and_less_often() {
        let mut clocks = asked(&[(10_000, 10_000)]);
        let mut begun = micros(1_000_000);
        for seconds in [1, 2, 4, 8, 16, 30, 30] {
            let pause = Duration::from_secs(seconds);
            assert!(clocks.due(begun + pause - micros(1)).is_empty(), "{seconds}");
            begun += pause;
            assert_eq!(clocks.due(begun), [PEER], "{seconds}");
            clocks.ask(begun, PEER);
            let here = begun + micros(10_000) - micros(1_000_000);
            clocks.answer(begun + micros(20_000), PEER, begun, here);
        }
    }
}
