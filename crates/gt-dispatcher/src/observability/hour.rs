//! The last hour in minutes, recorded whether anybody watches or not. A server with a state folder
//! continues it after a restart.

use std::collections::VecDeque;
use std::time::Duration;

use gt_ir::status::{MINUTES, MinuteStatus};

/// The seconds of a minute.
const MINUTE: u64 = 60;

/// A ring of minutes.
#[derive(Default)]
pub(crate) struct LastHour {
    minutes: VecDeque<MinuteStatus>,
    /// When the dispatcher started, in seconds since 1970.
    started: u64,
    /// The number of the present minute, from 0 on; those before it are recorded.
    present: u64,
    /// The counters at the end of the last recorded minute.
    before: HourCounters,
}

/// What has been counted since the dispatcher started.
#[derive(Clone, Copy, Default)]
pub(crate) struct HourCounters {
    /// The device time of all sessions.
    pub device: Duration,
    pub events: EventCounters,
}

/// How many cluster events of some kinds there were.
#[derive(Clone, Copy, Default)]
pub(crate) struct EventCounters {
    pub moves: u64,
    pub recoveries: u64,
    /// Workers lost, sessions that ended by an error, and tensors lost.
    pub losses: u64,
}

impl LastHour {
    /// Returns whether a minute has ended since the last one was recorded.
    pub fn is_due(&self, now: Duration) -> bool {
        now.as_secs() / MINUTE > self.present
    }

    /// Sets when the dispatcher started, in seconds since 1970.
    pub fn set_start(&mut self, started: u64) {
        self.started = started;
    }

    /// Returns when a minute began, in seconds since 1970.
    fn time_of(&self, minute: &MinuteStatus) -> u64 {
        self.started.saturating_add_signed(minute.begin)
    }

    /// Returns the newest minutes in their order, each with when it began, in seconds since 1970.
    pub fn newest(&self, count: usize) -> impl Iterator<Item = (u64, &MinuteStatus)> {
        let older = self.minutes.len().saturating_sub(count);
        self.minutes.iter().skip(older).map(|minute| (self.time_of(minute), minute))
    }

    /// Takes the minutes of a dispatcher before this one, in their order. Those of more than an hour
    /// ago are dropped, and those of the future, as after a clock was set.
    pub fn adopt(&mut self, minutes: impl IntoIterator<Item = (u64, MinuteStatus)>) {
        let hour = MINUTES as u64 * MINUTE;
        for (at, minute) in minutes {
            if at < self.started && at + hour >= self.started {
                let begin = -((self.started - at) as i64);
                self.push(MinuteStatus { begin, ..minute });
            }
        }
    }

    fn push(&mut self, minute: MinuteStatus) {
        if self.minutes.len() == MINUTES {
            self.minutes.pop_front();
        }
        self.minutes.push_back(minute);
    }

    /// Records the minutes that have ended, and returns how many of them are kept.
    ///
    /// If several have ended, nothing was sent or received in the first ones: device time that is
    /// reported now was used in all of them, and the numbers of `present` are those of each.
    pub fn record(
        &mut self,
        now: Duration,
        counters: HourCounters,
        present: &MinuteStatus,
    ) -> usize {
        let end = now.as_secs() / MINUTE;
        let ended = u32::try_from(end.saturating_sub(self.present)).unwrap_or(u32::MAX);
        if ended == 0 {
            return 0;
        }
        let HourCounters { device, events } = self.before;
        let used = counters.device.saturating_sub(device) / ended;
        for minute in end.saturating_sub(MINUTES as u64).max(self.present)..end {
            let mut recorded = MinuteStatus { used, ..present.clone() };
            recorded.begin = (minute * MINUTE) as i64;
            // Later minutes would have been recorded before anything happened in them.
            if minute == self.present {
                recorded.moves = (counters.events.moves - events.moves) as u32;
                recorded.recoveries = (counters.events.recoveries - events.recoveries) as u32;
                recorded.losses = (counters.events.losses - events.losses) as u32;
            }
            self.push(recorded);
        }
        (self.present, self.before) = (end, counters);
        MINUTES.min(ended as usize)
    }

    /// Returns the minutes, the oldest first.
    pub fn minutes(&self) -> Vec<MinuteStatus> {
        self.minutes.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(device: u64, moves: u64) -> HourCounters {
        let events = EventCounters { moves, ..EventCounters::default() };
        HourCounters { device: Duration::from_secs(device), events }
    }

    #[test]
    fn an_hour_of_minutes_is_kept() {
        let mut hour = LastHour::default();
        let at = Duration::from_secs;
        let present = MinuteStatus { workers: 2, ..MinuteStatus::default() };
        assert!(!hour.is_due(at(59)) && hour.is_due(at(60)));
        hour.record(at(59), counters(5, 0), &present);
        assert_eq!(hour.minutes(), []);
        hour.record(at(61), counters(30, 1), &present);
        hour.record(at(62), counters(31, 1), &present);
        let first = MinuteStatus { used: at(30), moves: 1, ..present.clone() };
        assert_eq!(hour.minutes(), [first]);
        // Two minutes in which nothing was received, and one more.
        hour.record(at(245), counters(120, 4), &present);
        let seen: Vec<_> = hour.minutes().iter().map(|it| (it.begin, it.used, it.moves)).collect();
        let idle = |begin| (begin, at(30), 0);
        assert_eq!(seen, [(0, at(30), 1), (60, at(30), 3), idle(120), idle(180)]);
        hour.record(at(100_000), counters(120, 4), &present);
        let minutes = hour.minutes();
        assert_eq!((minutes.len(), minutes[59].begin), (MINUTES, 99_900));
        assert!(minutes.is_sorted_by_key(|minute| minute.begin));
    }

    #[test]
    fn the_hour_goes_on_after_a_restart() {
        let minute = |sessions| MinuteStatus { sessions, ..MinuteStatus::default() };
        let mut hour = LastHour::default();
        hour.set_start(1_000_000);
        // Too old, of the last hour, and of the future.
        let kept = [(996_000, minute(1)), (999_500, minute(2)), (1_000_100, minute(3))];
        hour.adopt(kept);
        assert_eq!(hour.record(Duration::from_secs(60), counters(1, 0), &minute(4)), 1);
        let seen: Vec<_> = hour.minutes().iter().map(|of| (of.begin, of.sessions)).collect();
        assert_eq!(seen, [(-500, 2), (0, 4)]);
        let times: Vec<_> = hour.newest(MINUTES).map(|(at, _)| at).collect();
        assert_eq!(times, [999_500, 1_000_000]);
    }
}
