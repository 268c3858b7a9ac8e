//! The numbers of sessions and of their lanes.

use std::collections::VecDeque;

use gt_ir::{Incarnation, SessionId};

/// The last numbers assigned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastNumbers {
    pub session: SessionId,
    pub incarnation: Incarnation,
}

impl Default for LastNumbers {
    fn default() -> LastNumbers {
        LastNumbers { session: SessionId::NONE, incarnation: Incarnation::NONE }
    }
}

/// The number of past incarnations that are remembered.
const PAST_INCARNATIONS: usize = 1 << 10;

/// Lanes that have ended, and their session.
struct PastLanes {
    incarnation: Incarnation,
    session: SessionId,
    /// The session's name; empty if it has lanes of another incarnation now.
    name: String,
}

/// Assigns the numbers of sessions and of their lanes.
#[derive(Default)]
pub(crate) struct SessionNumbers {
    last: LastNumbers,
    /// Past incarnations, oldest first: workers' events of them may still arrive.
    past: VecDeque<PastLanes>,
}

impl SessionNumbers {
    /// Returns a new number for a session.
    pub fn next_session(&mut self) -> SessionId {
        self.last.session.0 += 1;
        self.last.session
    }

    /// Returns a new number for the lanes of a session.
    pub fn next_incarnation(&mut self) -> Incarnation {
        self.last.incarnation.0 += 1;
        self.last.incarnation
    }

    /// Returns the last numbers assigned.
    pub fn last(&self) -> LastNumbers {
        self.last
    }

    /// Skips numbers up to these, which a server before this one may have assigned.
    pub fn skip_to(&mut self, last: LastNumbers) {
        self.last.session = self.last.session.max(last.session);
        self.last.incarnation = self.last.incarnation.max(last.incarnation);
    }

    /// Notes the session of lanes that have ended, and its name if it has ended, too.
    pub fn remember(&mut self, incarnation: Incarnation, session: SessionId, name: String) {
        if self.past.len() == PAST_INCARNATIONS {
            self.past.pop_front();
        }
        self.past.push_back(PastLanes { incarnation, session, name });
    }

    /// Returns the session of lanes that have ended; [`SessionId::NONE`] if it is not known.
    pub fn past_session(&self, incarnation: Incarnation) -> SessionId {
        let found = self.past.iter().find(|past| past.incarnation == incarnation);
        found.map_or(SessionId::NONE, |past| past.session)
    }

    /// Returns the name of a session that has ended, if it is still known.
    pub fn past_name(&self, session: SessionId) -> Option<&str> {
        let found = self.past.iter().rev().find(|past| past.session == session);
        found.map(|past| past.name.as_str()).filter(|name| !name.is_empty())
    }
}
