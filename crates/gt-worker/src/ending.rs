//! The end of sessions: their lanes are dropped, and messages that arrive later are ignored.

use gt_ir::{Incarnation, LaneId};

use crate::engine::Engine;
use crate::worker::Worker;

/// The number of ended sessions that are remembered, as late pieces for them may arrive.
const ENDED: usize = 1 << 10;

impl<E: Engine> Worker<E> {
    /// Returns whether a message for a session is late.
    pub(crate) fn has_ended(&self, incarnation: Incarnation) -> bool {
        incarnation < self.oldest || self.ended.contains(&incarnation)
    }

    pub(crate) fn end_session(&mut self, incarnation: Incarnation) {
        let of_session: Vec<LaneId> =
            self.lanes.keys().copied().filter(|id| id.incarnation == incarnation).collect();
        for id in of_session {
            if let Some(mut lane) = self.lanes.remove(&id) {
                lane.memory.end_grant(&mut self.device.held);
                lane.store.clear(&mut self.device.held);
                self.device.stats.hot_sequences -= lane.templates.len() as u64;
            }
        }
        self.ready.retire(incarnation);
        self.limits.retire(incarnation);
        self.shortages.retire(incarnation);
        self.collectives.end_session(incarnation);
        self.device.engine.release_memory();
        self.ended.push_back(incarnation);
        if self.ended.len() > ENDED {
            self.ended.pop_front();
        }
    }

    pub(crate) fn end_sessions_before(&mut self, oldest: Incarnation) {
        let mut incarnations: Vec<Incarnation> =
            self.lanes.keys().map(|lane| lane.incarnation).collect();
        incarnations.dedup();
        incarnations.retain(|incarnation| *incarnation < oldest);
        incarnations.into_iter().for_each(|incarnation| self.end_session(incarnation));
    }
}
