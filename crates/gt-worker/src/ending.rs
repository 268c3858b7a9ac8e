//! The end of sessions: their lanes are dropped, and messages that arrive later are ignored.

use gt_ir::LaneId;

use crate::engine::Engine;
use crate::worker::Worker;

/// The number of ended sessions that are remembered, as late pieces for them may arrive.
const ENDED: usize = 1 << 10;

impl<E: Engine> Worker<E> {
    /// Returns whether a message for a session is late.
    pub(crate) fn has_ended(&self, session: u32) -> bool {
        session < self.oldest || self.ended.contains(&session)
    }

    pub(crate) fn end_session(&mut self, session: u32) {
        let of_session: Vec<LaneId> =
            self.lanes.keys().copied().filter(|id| id.session == session).collect();
        for id in of_session {
            if let Some(mut lane) = self.lanes.remove(&id) {
                lane.memory.end_grant(&mut self.device.held);
                lane.store.clear(&mut self.device.held);
                self.device.stats.hot_sequences -= lane.templates.len() as u64;
            }
        }
        self.ready.retire(session);
        self.limits.retire(session);
        self.shortages.retire(session);
        self.collectives.end_session(session);
        self.device.engine.release_memory();
        self.ended.push_back(session);
        if self.ended.len() > ENDED {
            self.ended.pop_front();
        }
    }

    pub(crate) fn end_sessions_before(&mut self, oldest: u32) {
        let mut sessions: Vec<u32> = self.lanes.keys().map(|lane| lane.session).collect();
        sessions.dedup();
        sessions.retain(|session| *session < oldest);
        sessions.into_iter().for_each(|session| self.end_session(session));
    }
}
