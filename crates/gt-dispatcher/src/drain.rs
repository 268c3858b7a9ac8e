//! The drain of a worker: its slots and values move to other workers before it ends.

use std::collections::BTreeMap;
use std::time::Duration;

use gt_ir::SessionId;
use gt_ir::instruction::RequestId;

use crate::peer::PeerId;

/// Who has a worker drained.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DrainAsker {
    /// An operator, whose request is answered.
    Operator(PeerId, RequestId),
    /// The worker itself, which is to be stopped.
    Worker,
}

/// The drain of a worker.
pub(crate) struct Drain {
    pub since: Duration,
    /// When it is given up.
    pub until: Duration,
    /// Whether the worker ends at that time in any case.
    pub force: bool,
    pub asker: DrainAsker,
    /// The sessions that had slots on the worker, and the number of each one's last snapshot then.
    pub sessions: BTreeMap<SessionId, u64>,
    /// The sessions whose values stay in the folder of the worker's state.
    pub saved: u64,
    /// What it waits for.
    pub waits: Vec<String>,
}

impl Drain {
    /// Describes what it waits for.
    pub fn waits_for(&self) -> String {
        match self.waits.as_slice() {
            [] => "nothing more".into(),
            waits => waits.join("; "),
        }
    }

    /// Describes a drain that is done after this time.
    pub fn summary(&self, name: &str, now: Duration) -> String {
        let took = now.saturating_sub(self.since).as_secs_f64();
        let moved = self.sessions.len() as u64 - self.saved.min(self.sessions.len() as u64);
        let mut text = format!("the worker '{name}' is drained, after {took:.2} s");
        if moved > 0 {
            text += &format!(": {} on other workers", continue_there(moved));
        }
        if self.saved > 0 {
            text += &format!(
                ": its --state has the tensors of {}, which {} for it to be started again",
                sessions(self.saved),
                if self.saved == 1 { "waits" } else { "wait" }
            );
        }
        text
    }
}

fn sessions(count: u64) -> String {
    if count == 1 { "1 session".into() } else { format!("{count} sessions") }
}

fn continue_there(count: u64) -> String {
    format!("{} {}", sessions(count), if count == 1 { "continues" } else { "continue" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts_sessions() {
        let mut drain = Drain {
            since: Duration::ZERO,
            until: Duration::ZERO,
            force: false,
            asker: DrainAsker::Worker,
            sessions: BTreeMap::new(),
            saved: 0,
            waits: Vec::new(),
        };
        let now = Duration::from_millis(1500);
        assert_eq!(drain.summary("w0", now), "the worker 'w0' is drained, after 1.50 s");
        drain.sessions = [(SessionId(1), 0), (SessionId(2), 3)].into();
        let text = drain.summary("w0", now);
        assert!(text.ends_with(": 2 sessions continue on other workers"), "{text}");
        drain.saved = 2;
        let text = drain.summary("w0", now);
        assert!(text.ends_with("of 2 sessions, which wait for it to be started again"), "{text}");
    }
}
