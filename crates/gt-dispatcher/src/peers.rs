//! The peers that have sessions or are workers, by name.

use gt_ir::message::Named;

use crate::peer::{PeerId, word};
use crate::sessions::Sessions;
use crate::shares::DeviceShares;
use crate::workers::Workers;

/// The sessions and the workers of a dispatcher, and how the sessions share the workers.
#[derive(Default)]
pub(crate) struct Peers {
    pub sessions: Sessions,
    pub workers: Workers,
    pub shares: DeviceShares,
}

impl Peers {
    /// Returns the name of a session, or of a worker, slot or signal as one word.
    pub fn name(&self, named: Named) -> Option<String> {
        match named {
            Named::Session(number) => self.sessions.name(number).map(str::to_string),
            Named::Worker(id) => Some(self.workers.by_id(id)?.name.clone()),
            Named::Slot { session, slot } => {
                let slots = &self.sessions.by_number(session)?.planning.catalogue.slots;
                Some(self.workers.by_id(slots.host(slot)?)?.name.clone())
            }
            Named::Template { session, number } => {
                self.sessions.by_number(session)?.hot_path(number, 0..usize::MAX)
            }
            Named::Plan { session, number } => {
                let session = self.sessions.by_number(session)?;
                let span = session.planning.plans.span(number)?;
                let part = span.part.first as usize..span.part.last as usize;
                session.hot_path(span.template, part)
            }
            Named::Signal { session, number } => {
                let session = self.sessions.by_number(session)?;
                Some(word(session.planning.catalogue.signal(number)?.name()))
            }
        }
    }

    /// Returns whether the sessions that share a worker's time are those with commands in flight to
    /// it; for assertions.
    pub fn is_activity_counted(&self) -> bool {
        self.workers.iter().all(|worker| {
            self.sessions.iter().all(|session| {
                let slots = session.planning.catalogue.slots.on(worker.id);
                let is_active = slots.iter().any(|slot| session.flow.in_flight(*slot).0 > 0);
                self.shares.is_active(worker.id, session.identity.number) == is_active
            })
        })
    }

    /// Returns the clients and the workers.
    pub fn all(&self) -> Vec<PeerId> {
        let workers = self.workers.iter().map(|worker| worker.peer);
        self.sessions.peers().into_iter().chain(workers).collect()
    }
}
