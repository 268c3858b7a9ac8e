//! Replays the batches of a session's log, and compares repeated answers with the first ones.

use std::sync::Arc;
use std::time::Duration;

use gt_ir::message::{Failure, Reply, ServerToClient};
use gt_ir::{Content, SourceId};

use super::Dispatcher;
use crate::lineage::Digest;
use crate::peer::PeerId;
use crate::queue::UnplannedBatch;
use crate::sessions::ClientSession;

/// How many replayed batches are queued at a time.
const AHEAD: usize = 4;

impl Dispatcher {
    /// Queues the next batches of all sessions that are being replayed.
    pub(super) fn replay(&mut self, now: Duration) {
        let is_replaying = |session: &&ClientSession| {
            let lineage = session.lineage.as_ref();
            session.queue.batches.len() < AHEAD
                && session.has_worker()
                && lineage.is_some_and(|lineage| lineage.log.is_replaying())
        };
        let peers: Vec<PeerId> = self
            .peers
            .sessions
            .iter()
            .filter(is_replaying)
            .map(|session| session.identity.peer)
            .collect();
        for peer in peers {
            let Some(session) = self.peers.sessions.get_mut(peer) else { continue };
            if session.queue.batches.is_empty() {
                self.scheduler.wake(peer);
            }
            while session.queue.batches.len() < AHEAD {
                let Some(lineage) = &mut session.lineage else { break };
                match lineage.log.replay() {
                    None => break,
                    Some(Ok(batch)) if batch.commands.is_empty() => {
                        session.return_credit(&mut self.outbox, batch.weight);
                    }
                    Some(Ok(batch)) => {
                        let mut queued = UnplannedBatch::new(now, batch.commands, batch.weight);
                        (queued.batch, queued.slots) = (batch.number, batch.slots);
                        queued.skipped = batch.skipped;
                        session.queue.batches.push_back(queued);
                    }
                    Some(Err(reason)) => {
                        let reason = format!("the session cannot be restored: {reason}");
                        self.refuse(now, peer, reason);
                        break;
                    }
                }
            }
        }
    }

    /// Compares a recomputed value with the one that the client already received.
    pub(super) fn compare(
        &mut self,
        peer: PeerId,
        known: Digest,
        result: &Result<Content, Failure>,
    ) {
        let reason = match result {
            Ok(content) if Digest::of(content) == Some(known) => return,
            Err(failure) => failure.reason.clone(),
            // An engine that does not promise equal bits may sum in another order.
            _ if self.peers.workers.iter().any(|worker| !worker.is_exact) => {
                let text = "a recomputed value differs from the original, as the \
                            engine does not promise equal bits";
                return self.outbox.push(peer, ServerToClient::Notice { text: text.into() });
            }
            _ => "a value differs from the one that the program received".to_string(),
        };
        let failure = Failure::new(
            "fetch",
            format!("the tensors could not be restored after the loss of a worker: {reason}"),
            "",
            SourceId::default(),
        );
        if let Some(session) = self.peers.sessions.get_mut(peer) {
            session.planning.catalogue.fail_all(&Arc::new(failure));
        }
    }

    /// Marks the requests that the messages to be sent answer. A snapshot is complete only once all
    /// requests before it are answered.
    pub(super) fn log_answers(&mut self) {
        let mut waiting = Vec::new();
        for (peer, message) in &self.outbox.0 {
            if let Some(answer) = message.answer()
                && let Some(session) = self.peers.sessions.get_mut(*peer)
                && let Some(lineage) = &mut session.lineage
            {
                let digest = match &answer.result {
                    Ok(Reply::Value(content)) => Digest::of(content),
                    _ => None,
                };
                lineage.log.mark_answered(answer.request, digest);
                if answer.result.is_err() {
                    lineage.log.mark_failed(answer.request);
                }
                waiting.extend(lineage.is_pending_stored().then_some(*peer));
            }
        }
        waiting.into_iter().for_each(|peer| self.end_snapshot(peer));
    }
}
