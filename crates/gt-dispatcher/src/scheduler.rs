//! Chooses the session whose batch is planned next, round-robin.

use crate::dispatcher::PeerId;
use crate::sessions::{Session, Sessions};

/// The position in the round.
#[derive(Default)]
pub(crate) struct Scheduler {
    /// The session served last.
    last: Option<PeerId>,
}

impl Scheduler {
    /// The next session with a batch and room, in its lanes' windows and for values: the first after
    /// the one served
    /// last, wrapping around.
    pub fn next(&mut self, sessions: &Sessions, window: u64) -> Option<PeerId> {
        let is_ready = |session: &&Session| {
            let home = session.catalogue.slots.home();
            !session.queue.is_empty()
                && session.has_worker()
                && session.unread.has_room()
                && session.lineage.as_ref().is_none_or(|lineage| lineage.has_room())
                && home.is_some_and(|home| session.flow.has_room(home, window))
        };
        let last = self.last;
        let next = sessions
            .iter()
            .filter(is_ready)
            .map(|session| session.peer)
            .min_by_key(|peer| (last.is_some_and(|last| *peer <= last), *peer));
        self.last = next.or(self.last);
        next
    }
}
