//! The last hour in minutes, recorded whether anybody watches or not. It begins anew with the
//! dispatcher.

use std::collections::VecDeque;
use std::time::Duration;

use gt_ir::status::MinuteStatus;

/// The number of minutes that are kept, of some 50 bytes each.
const MINUTES: usize = 60;
const MINUTE: u64 = 60;

/// A ring of minutes.
#[derive(Default)]
pub(crate) struct LastHour {
    minutes: VecDeque<MinuteStatus>,
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
    pub moves: u32,
    pub recoveries: u32,
    /// Workers lost, sessions that ended by an error, and tensors lost.
    pub losses: u32,
}

impl LastHour {
    /// Returns whether a minute has ended since the last one was recorded.
    pub fn is_due(&self, now: Duration) -> bool {
        now.as_secs() / MINUTE > self.present
    }

    /// Records the minutes that have ended. If several have, nothing was sent or received in the
    /// first ones: device time that is reported now was used in all of them, and the numbers of
    /// `present` are those of each.
    pub fn record(&mut self, now: Duration, counters: HourCounters, present: &MinuteStatus) {
        let end = now.as_secs() / MINUTE;
        let ended = u32::try_from(end.saturating_sub(self.present)).unwrap_or(u32::MAX);
        if ended == 0 {
            return;
        }
        let HourCounters { device, events } = self.before;
        let used = counters.device.saturating_sub(device) / ended;
        for minute in end.saturating_sub(MINUTES as u64).max(self.present)..end {
            let mut recorded = MinuteStatus { used, ..present.clone() };
            recorded.begin = Duration::from_secs(minute * MINUTE);
            // Later minutes would have been recorded before anything happened in them.
            if minute == self.present {
                recorded.moves = counters.events.moves - events.moves;
                recorded.recoveries = counters.events.recoveries - events.recoveries;
                recorded.losses = counters.events.losses - events.losses;
            }
            if self.minutes.len() == MINUTES {
                self.minutes.pop_front();
            }
            self.minutes.push_back(recorded);
        }
        (self.present, self.before) = (end, counters);
    }

    /// Returns the minutes, the oldest first.
    pub fn minutes(&self) -> Vec<MinuteStatus> {
        self.minutes.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(device: u64, moves: u32) -> HourCounters {
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
        let idle = |begin| (at(begin), at(30), 0);
        assert_eq!(seen, [(at(0), at(30), 1), (at(60), at(30), 3), idle(120), idle(180)]);
        hour.record(at(100_000), counters(120, 4), &present);
        let minutes = hour.minutes();
        assert_eq!((minutes.len(), minutes[59].begin), (MINUTES, at(99_900)));
        assert!(minutes.is_sorted_by_key(|minute| minute.begin));
    }
}
