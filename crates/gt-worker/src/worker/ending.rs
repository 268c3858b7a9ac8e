//! The end of sessions: their lanes are dropped, and messages that arrive later are ignored.

use std::collections::VecDeque;

use gt_ir::{Incarnation, LaneId};

use super::Worker;
use crate::engine::Engine;

/// The number of ended sessions that are remembered, as late pieces for them may arrive.
const REMEMBERED: usize = 1 << 10;

/// The sessions whose late messages are ignored.
pub(super) struct EndedSessions {
    /// The last that have ended.
    recent: VecDeque<Incarnation>,
    /// Sessions before this one belong to a previous dispatcher.
    oldest: Incarnation,
}

impl Default for EndedSessions {
    fn default() -> EndedSessions {
        EndedSessions { recent: VecDeque::new(), oldest: Incarnation::NONE }
    }
}

impl EndedSessions {
    /// Returns whether a message for a session is late.
    pub fn has(&self, incarnation: Incarnation) -> bool {
        incarnation < self.oldest || self.recent.contains(&incarnation)
    }

    /// Ignores messages for sessions before this one from now on.
    pub fn forget_before(&mut self, oldest: Incarnation) {
        self.oldest = oldest;
    }

    fn add(&mut self, incarnation: Incarnation) {
        self.recent.push_back(incarnation);
        if self.recent.len() > REMEMBERED {
            self.recent.pop_front();
        }
    }
}

impl<E: Engine> Worker<E> {
    /// Drops a session.
    pub(super) fn end_session(&mut self, incarnation: Incarnation) {
        let of_session: Vec<LaneId> =
            self.lanes.keys().copied().filter(|id| id.incarnation == incarnation).collect();
        for id in of_session {
            if let Some(mut lane) = self.lanes.remove(&id) {
                self.device.abandon_call(&mut lane);
                lane.memory.end_grant(&mut self.device.held);
                lane.store.clear(&mut self.device.held);
                self.device.stats.hot_sequences -= lane.templates.len() as u64;
            }
        }
        self.ready.retire(incarnation);
        self.interactive.retire(incarnation);
        self.limits.retire(incarnation);
        self.shortages.retire(incarnation);
        self.collectives.end_session(incarnation);
        self.device.engine.release_memory();
        self.ended.add(incarnation);
    }

    /// Drops the sessions before one: they belong to a previous dispatcher.
    pub(super) fn end_sessions_before(&mut self, oldest: Incarnation) {
        let mut incarnations: Vec<Incarnation> =
            self.lanes.keys().map(|lane| lane.incarnation).collect();
        incarnations.dedup();
        incarnations.retain(|incarnation| *incarnation < oldest);
        incarnations.into_iter().for_each(|incarnation| self.end_session(incarnation));
    }
}
