//! The dispatcher's own events: batches planned, and values forwarded to clients.

use std::time::Duration;

use gt_ir::Content;
use gt_ir::event::{Event, EventKind, Track, What};
use gt_ir::message::Failure;

use super::log::LineKind;
use super::{Observability, of_batch};
use crate::answers::PendingFetch;
use crate::peer::PeerId;
use crate::peers::Peers;
use crate::sessions::ClientSession;

/// Queueing times up to this emit no event.
const SOON: Duration = Duration::from_micros(1);

impl Observability {
    /// Emits the events of a batch that was received at `since` and planned from `begin` until now.
    pub fn emit_batch(
        &mut self,
        now: Duration,
        session: &ClientSession,
        weight: u64,
        (since, begin): (Duration, Duration),
        peers: &Peers,
    ) {
        let end = self.time(now);
        if begin > since + SOON {
            self.emit(now, of_batch(EventKind::Queue, session, weight, since, begin), peers);
        }
        self.emit(now, of_batch(EventKind::Plan, session, weight, begin, end), peers);
    }

    /// Logs and emits that a session is restored, and replays this number of batches.
    pub fn emit_recovery(&mut self, now: Duration, session: &ClientSession, batches: usize) {
        let details = format_args!("run={} batches={batches}", session.identity.incarnation);
        self.write(now, LineKind::WorkerRecv, &session.identity.label, "Recovery", 0, details);
        let at = self.time(now);
        self.enqueue(of_batch(EventKind::Recover, session, batches as u64, at, at));
    }

    /// Logs and emits that a worker's value is forwarded to its client.
    pub fn emit_answer(
        &mut self,
        now: Duration,
        peer: PeerId,
        request: &PendingFetch,
        result: &Result<Content, Failure>,
        peers: &Peers,
    ) {
        let bytes = result.as_ref().map_or(0, |content| content.meta().bytes());
        let success = if result.is_ok() { "True" } else { "False" };
        let details = format_args!("success={success}");
        if let Some(worker) = peers.workers.get(peer) {
            let (kind, name) = (LineKind::WorkerRecv, "WorkerGetData");
            self.write(now, kind, &worker.name, name, bytes, details);
        }
        let Some(session) = peers.sessions.get(request.client) else { return };
        self.write(now, LineKind::Send, &session.identity.label, "GetData", bytes, details);
        let at = self.time(now);
        let event = Event {
            track: Track::Client,
            what: What::Fetch,
            tensor: request.tensor,
            failed: u32::from(result.is_err()),
            bytes: bytes as u64,
            ..of_batch(EventKind::Answer, session, 1, at, at)
        };
        self.enqueue(event);
    }
}
