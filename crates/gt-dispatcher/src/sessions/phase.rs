//! The phases of a session, and the transitions between them.

use std::collections::BTreeSet;
use std::mem;
use std::time::Duration;

use gt_ir::WorkerId;

use crate::planner::Slots;

/// How long a session waits for all of its workers when those that are connected would suffice.
pub(crate) const REJOIN: Duration = Duration::from_secs(2);

/// What a session does.
pub(crate) enum Phase {
    /// It has just been added, and is not placed yet.
    New,
    /// It is new, and waits for workers that are expected to connect.
    Starting(Box<AwaitedWorkers>),
    /// It comes from the journal of a server that has died: it waits for its client, and for the
    /// workers that hold its values.
    Resuming(Box<AwaitedWorkers>),
    /// Its batches are planned while it has a worker.
    Running,
    /// It is rewound to its last snapshot, and waits for workers that can restore the values.
    Rewound,
}

/// The workers that a session waits for before it begins or resumes.
pub(crate) struct AwaitedWorkers {
    /// Since when it waits; `None` while its client is away.
    pub since: Option<Duration>,
    /// The session's slots, on the workers that hosted them.
    pub slots: Slots,
    pub workers: BTreeSet<WorkerId>,
    /// Whether its user was notified that workers are missing.
    pub is_notified: bool,
}

impl AwaitedWorkers {
    /// Begins to wait for these workers.
    pub fn new(
        since: Option<Duration>,
        slots: Slots,
        workers: BTreeSet<WorkerId>,
    ) -> Box<AwaitedWorkers> {
        Box::new(AwaitedWorkers { since, slots, workers, is_notified: false })
    }

    /// Returns when the session is to be checked again if no peer connects before, given the
    /// longest wait for workers.
    pub fn deadline(&self, worker_wait: Duration) -> Option<Duration> {
        let wait = if self.is_notified { worker_wait } else { REJOIN.min(worker_wait) };
        self.since.map(|since| since + wait)
    }
}

impl Phase {
    /// Enters a phase, and returns the one before.
    pub fn enter(&mut self, next: Phase) -> Phase {
        debug_assert!(self.precedes(&next), "{} -> {}", self.name(), next.name());
        mem::replace(self, next)
    }

    /// Returns whether a session may go from this phase to the `next`.
    fn precedes(&self, next: &Phase) -> bool {
        use Phase::{New, Resuming, Rewound, Running, Starting};
        matches!(
            (self, next),
            (New, Starting(_) | Resuming(_) | Running)
                | (Starting(_) | Resuming(_) | Rewound, Running)
                // Another worker may be lost before the session is restored.
                | (Running | Rewound, Rewound)
        )
    }

    fn name(&self) -> &'static str {
        match self {
            Phase::New => "new",
            Phase::Starting(_) => "starting",
            Phase::Resuming(_) => "resuming",
            Phase::Running => "running",
            Phase::Rewound => "rewound",
        }
    }

    /// Returns the workers that the session waits for before it begins or resumes.
    pub fn awaited(&self) -> Option<&AwaitedWorkers> {
        match self {
            Phase::Starting(awaited) | Phase::Resuming(awaited) => Some(awaited),
            Phase::New | Phase::Running | Phase::Rewound => None,
        }
    }

    pub fn awaited_mut(&mut self) -> Option<&mut AwaitedWorkers> {
        match self {
            Phase::Starting(awaited) | Phase::Resuming(awaited) => Some(awaited),
            Phase::New | Phase::Running | Phase::Rewound => None,
        }
    }

    /// Returns whether the session waits for workers that can restore its values.
    pub fn is_rewound(&self) -> bool {
        matches!(self, Phase::Rewound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn awaited() -> Box<AwaitedWorkers> {
        AwaitedWorkers::new(None, Slots::default(), BTreeSet::new())
    }

    #[test]
    fn a_session_runs_once_it_is_placed_and_is_rewound_only_while_it_runs() {
        let all = || {
            [
                Phase::New,
                Phase::Starting(awaited()),
                Phase::Resuming(awaited()),
                Phase::Running,
                Phase::Rewound,
            ]
        };
        let from = |phase: &Phase| -> Vec<&'static str> {
            all().iter().filter(|next| phase.precedes(next)).map(Phase::name).collect()
        };
        let found = all().each_ref().map(from);
        let running = vec!["running"];
        let expected = [
            vec!["starting", "resuming", "running"],
            running.clone(),
            running,
            vec!["rewound"],
            vec!["running", "rewound"],
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_session_whose_client_is_away_has_no_deadline() {
        let (mut waiting, wait) = (awaited(), Duration::from_secs(30));
        assert_eq!(waiting.deadline(wait), None);
        waiting.since = Some(wait);
        assert_eq!(waiting.deadline(wait), Some(wait + REJOIN));
        waiting.is_notified = true;
        assert_eq!(waiting.deadline(wait), Some(wait * 2));
    }
}
