//! Lanes that wait for memory: how long they do, and what is told of them.
//!
//! A lane's command is refused only once its session's stream is drained: the client waits for an
//! answer or for credit, so that it has sent all that it has issued, and all of that is at the lanes.
//! Until then, what is under way may free memory.

use std::time::Duration;

use gt_ir::LaneId;
use gt_ir::entitlement::MemoryWait;
use gt_ir::message::Message;

use super::{Dispatcher, PeerId};
use crate::observability::log::LineKind;

/// How often it is looked whether a stream is drained, if nothing comes of its session.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long a lane waits for others to free memory.
const LONGEST: Duration = Duration::from_secs(5);

/// A slot's wait for memory.
pub(crate) struct Shortage {
    pub wait: MemoryWait,
    pub since: Duration,
    /// When it began, and whether that was long ago.
    pub begun: Duration,
    pub is_long: bool,
    /// Whether the lane was told that all is there that its session has sent.
    has_all: bool,
}

impl Shortage {
    fn due(&self) -> Duration {
        self.since + if self.has_all { LONGEST } else { LOOK_EVERY }
    }
}

impl Dispatcher {
    /// A lane waits for memory, or no longer does.
    pub(super) fn memory_wait(
        &mut self,
        now: Duration,
        peer: PeerId,
        lane: LaneId,
        wait: Option<MemoryWait>,
    ) {
        if !self.is_on(lane, peer) {
            return;
        }
        let Some(session) = self.sessions.running_mut(lane.session) else { return };
        let Some(wait) = wait else {
            session.shortages.remove(&lane.slot);
            return;
        };
        let MemoryWait { bytes, ref holder, .. } = wait;
        let of = if holder.is_empty() { "the worker" } else { holder };
        let details = format_args!("slot={} bytes={bytes} of={of}", lane.slot);
        self.observability.write(
            now,
            LineKind::WorkerRecv,
            &session.label,
            "MemoryWait",
            0,
            details,
        );
        let (since, begun) = (now, now);
        let shortage = Shortage { wait, since, begun, is_long: false, has_all: false };
        session.shortages.insert(lane.slot, shortage);
        // What is queued may free memory: the lane gets it all.
        session.flow.ignore_window();
        self.pump(now);
        self.end_shortages(now);
    }

    /// The client of a session waits for credit.
    pub(super) fn client_waits(&mut self, now: Duration, peer: PeerId) {
        if let Some(session) = self.sessions.get_mut(peer) {
            session.waits = true;
            self.end_shortages(now);
        }
    }

    /// Tells lanes that have waited that they have all that was sent, or wait no longer.
    pub(super) fn end_shortages(&mut self, now: Duration) {
        let window = self.limits.client_window;
        for session in self.sessions.iter_mut().filter(|session| !session.shortages.is_empty()) {
            // What may be planned has been: the queue of a session whose client waits has all there is.
            let mut queued = session.queue.iter().flat_map(|batch| &batch.commands);
            let is_drained = session.open > window
                || session.waits
                || self.answers.has_asked(session.peer)
                || queued.any(|command| command.request().is_some());
            let number = session.run;
            let slots = &session.catalogue.slots;
            for (slot, shortage) in &mut session.shortages {
                let is_due = now >= shortage.due();
                if !shortage.has_all && !is_drained {
                    shortage.since = if is_due { now } else { shortage.since };
                    continue;
                }
                if shortage.has_all && !is_due {
                    continue;
                }
                let lane = LaneId { session: number, slot: *slot };
                let has_waited = std::mem::replace(&mut shortage.has_all, true);
                let number = shortage.wait.number;
                let host = slots.host(*slot).and_then(|worker| self.workers.by_id(worker));
                if let Some(worker) = host {
                    let message = Message::MemoryTimeout { lane, number, has_waited };
                    self.outbox.push(worker.peer, message);
                }
                // It is told once more if that is lost on the way.
                shortage.since = now;
            }
        }
    }

    /// When [`Dispatcher::end_shortages`] is due next.
    pub(super) fn next_shortage(&self) -> Option<Duration> {
        let all = self.sessions.iter().flat_map(|session| session.shortages.values());
        all.map(Shortage::due).min()
    }
}
