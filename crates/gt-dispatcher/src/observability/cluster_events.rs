//! The newest cluster events: losses, recoveries and moves, for people who watch.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use gt_ir::SessionId;
use gt_ir::status::cluster_event::{ClusterEvent, ClusterEventKind, SessionLabel};
use gt_ir::status::counters::ClusterCounters;

use super::hour::EventCounters;
use crate::peer::short;

/// The most events that are kept: the loss of a worker that 50 sessions use is some 150. With labels
/// and reasons of limited lengths, they have a few hundred bytes each, and 2 KB at most.
const MOST: usize = 256;

/// A ring of events, and the recoveries that have begun.
#[derive(Default)]
pub(crate) struct ClusterEvents {
    events: VecDeque<ClusterEvent>,
    /// The number of events so far, which is the number of the last one.
    count: u64,
    recovering: BTreeMap<SessionId, OngoingRecovery>,
    pub counters: ClusterCounters,
}

/// A recovery that has not ended.
struct OngoingRecovery {
    session: SessionLabel,
    cause: String,
    since: Duration,
}

impl ClusterEvents {
    /// Records an event.
    pub fn add(&mut self, now: Duration, kind: ClusterEventKind) {
        if self.events.len() == MOST {
            self.events.pop_front();
        }
        self.count += 1;
        let counters = &mut self.counters;
        match kind {
            ClusterEventKind::SlotsMoved { bytes, .. } => {
                counters.moves += 1;
                counters.moved_bytes = counters.moved_bytes.saturating_add(bytes);
            }
            ClusterEventKind::Recovered { took, .. } => counters.recoveries.add(took),
            ClusterEventKind::WorkerLost { .. } => counters.workers_lost += 1,
            ClusterEventKind::SessionEnded { .. } => counters.sessions_ended += 1,
            ClusterEventKind::TensorsLost { .. } => counters.tensors_lost += 1,
            ClusterEventKind::WorkerJoined { .. } => counters.workers_joined += 1,
            ClusterEventKind::WorkerLeft { .. } => counters.workers_left += 1,
            ClusterEventKind::CommandGivenUp { .. } => counters.commands_given_up += 1,
            ClusterEventKind::WorkerDrains { .. }
            | ClusterEventKind::DrainEnded { .. }
            | ClusterEventKind::RecoveryBegun { .. } => {}
        }
        self.events.push_back(ClusterEvent { number: self.count, at: now, kind });
    }

    /// Returns the counts of which the last hour has the changes in each minute.
    pub fn of_hour(&self) -> EventCounters {
        let ClusterCounters { moves, workers_lost, sessions_ended, tensors_lost, .. } =
            &self.counters;
        EventCounters {
            moves: *moves,
            recoveries: self.counters.recoveries.count(),
            losses: workers_lost + sessions_ended + tensors_lost,
        }
    }

    /// Returns the events after the one of a number, in their order.
    pub fn after(&self, number: u64) -> Vec<ClusterEvent> {
        self.events.iter().filter(|event| event.number > number).cloned().collect()
    }

    /// Records that a session is being restored. If it already is, another worker was lost
    /// meanwhile: the time of the first loss counts.
    pub fn begin_recovery(
        &mut self,
        now: Duration,
        session: SessionLabel,
        cause: &str,
        (batches, bytes): (usize, u64),
    ) {
        let (cause, batches) = (short(cause), batches as u64);
        let since = self.recovering.get(&session.number).map_or(now, |earlier| earlier.since);
        let ongoing = OngoingRecovery { session: session.clone(), cause: cause.clone(), since };
        self.recovering.insert(session.number, ongoing);
        self.add(now, ClusterEventKind::RecoveryBegun { session, cause, batches, bytes });
    }

    /// Returns the sessions that are being restored.
    pub fn recovering(&self) -> impl Iterator<Item = SessionId> {
        self.recovering.keys().copied()
    }

    /// Returns whether any session is being restored.
    pub fn is_recovering(&self) -> bool {
        !self.recovering.is_empty()
    }

    /// Records that a session is restored.
    pub fn end_recovery(&mut self, now: Duration, session: SessionId) {
        if let Some(OngoingRecovery { session, cause, since }) = self.recovering.remove(&session) {
            let took = now.saturating_sub(since);
            self.add(now, ClusterEventKind::Recovered { session, cause, took });
        }
    }

    /// Forgets the recovery of a session that has ended, or that will not be restored.
    pub fn forget_recovery(&mut self, session: SessionId) {
        self.recovering.remove(&session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Duration = Duration::from_secs(3);

    fn lost(number: u64) -> ClusterEventKind {
        ClusterEventKind::WorkerLost { worker: format!("w{number}"), reason: String::new() }
    }

    #[test]
    fn the_newest_events_are_kept_and_a_watcher_gets_those_that_it_lacks() {
        let mut events = ClusterEvents::default();
        assert_eq!(events.after(0), []);
        for number in 1..=1000 {
            events.add(AT, lost(number));
        }
        let all = events.after(0);
        assert_eq!((all.len(), all[0].number), (MOST, 1001 - MOST as u64));
        let newest = ClusterEvent { number: 1000, at: AT, kind: lost(1000) };
        assert_eq!(events.after(999), [newest]);
        assert_eq!(events.after(1000), []);
        // A number of another dispatcher.
        assert_eq!(events.after(5000), []);
    }

    #[test]
    fn a_recovery_lasts_from_the_first_loss_until_it_ends_once() {
        let mut events = ClusterEvents::default();
        let session = SessionLabel { number: SessionId(7), name: "train #7".into() };
        events.begin_recovery(AT, session.clone(), "w1 was lost", (3, 4096));
        events.begin_recovery(2 * AT, session.clone(), "w2 was lost\n  hint: x", (5, 4096));
        assert!(events.is_recovering());
        events.end_recovery(4 * AT, session.number);
        events.end_recovery(5 * AT, session.number);
        assert!(!events.is_recovering());
        let kinds: Vec<_> = events.after(1).into_iter().map(|event| event.kind).collect();
        let cause = "w2 was lost   hint: x".to_string();
        let begun = ClusterEventKind::RecoveryBegun {
            session: session.clone(),
            cause: cause.clone(),
            batches: 5,
            bytes: 4096,
        };
        let ended = ClusterEventKind::Recovered { session, cause, took: 3 * AT };
        assert_eq!(kinds, [begun, ended]);
    }
}
