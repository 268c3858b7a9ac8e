//! Lanes that wait for memory: how long they wait, and when the dispatcher lets them fail.
//!
//! A lane's command fails for lack of memory only once its session's stream is drained: the client
//! waits for an answer or for credit, so it has sent every command that it has issued, and all of
//! them have reached the lanes. Until then, commands in flight may free memory.

use std::time::Duration;

use gt_ir::LaneId;
use gt_ir::entitlement::MemoryWait;
use gt_ir::message::ServerToWorker;

use super::Dispatcher;
use crate::observability::log::LineKind;
use crate::peer::PeerId;
use crate::sessions::SlotShortage;

/// The interval at which a stream is checked for being drained when its session sends nothing.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long a lane waits for other sessions to free memory.
const LONGEST: Duration = Duration::from_secs(5);

/// Returns when a slot's wait is to be looked at.
fn due(shortage: &SlotShortage) -> Duration {
    shortage.since + if shortage.has_all { LONGEST } else { LOOK_EVERY }
}

impl Dispatcher {
    /// Handles a lane's report that it waits for memory (`wait`), or no longer does (`None`).
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
        let Some(session) = self.peers.sessions.by_incarnation_mut(lane.incarnation) else {
            return;
        };
        let Some(wait) = wait else {
            session.account.shortages.remove(&lane.slot);
            return;
        };
        let MemoryWait { bytes, ref holder, .. } = wait;
        let of = if holder.is_empty() { "the worker" } else { holder };
        let details = format_args!("slot={} bytes={bytes} of={of}", lane.slot);
        self.observability.write(
            now,
            LineKind::WorkerRecv,
            &session.identity.label,
            "MemoryWait",
            0,
            details,
        );
        let (since, begun) = (now, now);
        let shortage = SlotShortage { wait, since, begun, is_long: false, has_all: false };
        session.account.shortages.insert(lane.slot, shortage);
        // Queued commands may free memory: the lane gets all of them.
        session.flow.ignore_window();
        self.pump(now);
        self.resolve_memory_waits(now);
    }

    /// Handles a client's report that it waits for credit.
    pub(super) fn client_waits(&mut self, now: Duration, peer: PeerId) {
        if let Some(session) = self.peers.sessions.get_mut(peer) {
            session.flow.awaits_credit = true;
            self.resolve_memory_waits(now);
        }
    }

    /// Notifies lanes that wait for memory that they have received every command, or that their
    /// wait is over.
    pub(super) fn resolve_memory_waits(&mut self, now: Duration) {
        let window = self.limits.client_window;
        for session in
            self.peers.sessions.iter_mut().filter(|session| !session.account.shortages.is_empty())
        {
            // What may be planned has been planned: if the client waits, the queue holds everything
            // that it has issued.
            let mut queued = session.queue.batches.iter().flat_map(|batch| &batch.commands);
            let is_drained = session.flow.open > window
                || session.flow.awaits_credit
                || self.answers.has_pending(session.identity.peer)
                || queued.any(|command| command.request().is_some());
            let incarnation = session.identity.incarnation;
            let slots = &session.planning.catalogue.slots;
            for (slot, shortage) in &mut session.account.shortages {
                let is_due = now >= due(shortage);
                if !shortage.has_all && !is_drained {
                    shortage.since = if is_due { now } else { shortage.since };
                    continue;
                }
                if shortage.has_all && !is_due {
                    continue;
                }
                let lane = LaneId { incarnation, slot: *slot };
                let has_waited = std::mem::replace(&mut shortage.has_all, true);
                let number = shortage.wait.number;
                let host = slots.host(*slot).and_then(|worker| self.peers.workers.by_id(worker));
                if let Some(worker) = host {
                    let message = ServerToWorker::MemoryTimeout { lane, number, has_waited };
                    self.outbox.push(worker.peer, message);
                }
                // Repeated after `LONGEST`, in case the message is lost.
                shortage.since = now;
            }
        }
    }

    /// Returns when [`Dispatcher::resolve_memory_waits`] is due next.
    pub(super) fn next_shortage(&self) -> Option<Duration> {
        let all = self.peers.sessions.iter().flat_map(|session| session.account.shortages.values());
        all.map(due).min()
    }
}
