//! How the dispatcher, its workers and its sessions are.

use std::time::Duration;

use gt_ir::status::{SessionStatus, Status, Waits, WorkerStatus};

use crate::dispatcher::{Dispatcher, PeerId};
use crate::session::Session;

impl Dispatcher {
    /// How everybody is at this moment, for one who asks.
    pub(crate) fn status(&self, now: Duration, asker: PeerId) -> Status {
        let workers = self.pool.iter().map(|worker| WorkerStatus {
            id: worker.id,
            number: worker.number,
            name: worker.name.clone(),
            homes: worker.sessions,
            in_flight: worker.in_flight,
            batches: worker.owners.len() as u64,
            busy_since: worker.busy_since,
            busy: worker.busy
                + worker.busy_since.map_or(Duration::ZERO, |since| now.saturating_sub(since)),
            report: self.watch.reports.get(&worker.id).cloned().unwrap_or_default(),
        });
        let sessions = self.sessions.values().map(|session| self.session_status(session));
        Status {
            now,
            asker: self.sessions.get(&asker).map(|session| session.number),
            workers: workers.collect(),
            sessions: sessions.collect(),
            dropped: self.watch.dropped,
        }
    }

    fn session_status(&self, session: &Session) -> SessionStatus {
        let shares = self.watch.reports.values().flat_map(|report| &report.sessions);
        let shares = shares.filter(|share| share.session == session.number);
        let (bytes, busy) = shares.fold((0u64, Duration::ZERO), |(bytes, busy), share| {
            (bytes.saturating_add(share.bytes), busy.saturating_add(share.busy))
        });
        SessionStatus {
            number: session.number,
            name: session.label.clone(),
            since: session.since,
            instructions: session.instructions,
            open: session.open,
            queued: session.queue.iter().map(|batch| batch.weight).sum(),
            bytes,
            busy,
            waits: self.waits(session),
        }
    }

    fn waits(&self, session: &Session) -> Waits {
        if !session.queue.is_empty() {
            return if session.home.is_none() { Waits::Workers } else { Waits::Room };
        }
        let asked = self.requests.values().filter(|request| request.client == session.peer);
        // Of those asked for at once, whichever comes first by number.
        let oldest = asked.min_by_key(|request| (request.since, request.original));
        if let Some(request) = oldest {
            let worker = self.pool.get(request.worker).map(|worker| worker.name.clone());
            return Waits::Value {
                tensor: request.tensor,
                worker: worker.unwrap_or_default(),
                since: request.since,
            };
        }
        let is_at_work = |peer| self.pool.get(peer).is_some_and(|worker| worker.in_flight > 0);
        if session.open > 0 && session.busy.iter().copied().any(is_at_work) {
            Waits::Work
        } else {
            Waits::Nothing
        }
    }
}
