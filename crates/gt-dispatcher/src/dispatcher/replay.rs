//! Batches of a session's log that are planned anew, and the answers that they give again.

use std::sync::Arc;
use std::time::Duration;

use gt_ir::SourceId;
use gt_ir::message::{Failure, Message};

use super::{Dispatcher, PeerId};
use crate::lineage::Digest;
use crate::queue::Queued;
use crate::sessions::Session;

/// How many batches are taken from the log at a time when they are planned anew.
const AHEAD: usize = 4;

impl Dispatcher {
    /// Queues batches that are to be planned anew.
    pub(super) fn replay(&mut self, now: Duration) {
        let is_replayed = |session: &&Session| {
            let lineage = session.lineage.as_ref();
            session.queue.len() < AHEAD
                && session.has_worker()
                && lineage.is_some_and(|lineage| lineage.log.is_replayed())
        };
        let peers: Vec<PeerId> =
            self.sessions.iter().filter(is_replayed).map(|session| session.peer).collect();
        for peer in peers {
            let Some(session) = self.sessions.get_mut(peer) else { continue };
            while session.queue.len() < AHEAD {
                let Some(lineage) = &mut session.lineage else { break };
                match lineage.log.replay() {
                    None => break,
                    Some(Ok(batch)) if batch.commands.is_empty() => {
                        session.give_back(&mut self.outbox, batch.weight);
                    }
                    Some(Ok(batch)) => {
                        let mut queued = Queued::new(now, batch.commands, batch.weight);
                        (queued.batch, queued.slots) = (batch.number, batch.slots);
                        queued.skipped = batch.skipped;
                        session.queue.push_back(queued);
                    }
                    Some(Err(reason)) => {
                        let reason = format!("the session cannot be made again: {reason}");
                        self.refuse(now, peer, reason);
                        break;
                    }
                }
            }
        }
    }

    /// Compares a value that was computed again with what the client has got.
    pub(super) fn compare(&mut self, peer: PeerId, known: Digest, message: &Message) {
        if Digest::of(message) == Some(known) {
            return;
        }
        let reason = match message {
            Message::Value { result: Err(failure), .. } => failure.reason.clone(),
            // An engine that promises less than equal bits may sum in another order.
            _ if self.workers.iter().any(|worker| !worker.is_exact) => {
                let text = "a value that was computed again differs from the one before, as the \
                            engine does not promise equal bits";
                return self.outbox.push(peer, Message::Notice { text: text.into() });
            }
            _ => "a value differs from the one that the program has got".to_string(),
        };
        let failure = Failure::new(
            "fetch",
            format!("the tensors could not be made again after the loss of a worker: {reason}"),
            "",
            SourceId::default(),
        );
        if let Some(session) = self.sessions.get_mut(peer) {
            session.catalogue.fail_all(&Arc::new(failure));
        }
    }

    /// Notes which requests the messages to be sent answer. Snapshots wait for the answers to what
    /// was asked before them.
    pub(super) fn note_answers(&mut self) {
        let mut waiting = Vec::new();
        for (peer, message) in &self.outbox.0 {
            if let Some(request) = message.answers()
                && let Some(session) = self.sessions.get_mut(*peer)
                && let Some(lineage) = &mut session.lineage
            {
                lineage.log.answered(request, Digest::of(message));
                waiting.extend(lineage.is_taken().then_some(*peer));
            }
        }
        waiting.into_iter().for_each(|peer| self.end_snapshot(peer));
    }
}
