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

/// Assigns the numbers of sessions and of their lanes.
#[derive(Default)]
pub(crate) struct SessionNumbers {
    last: LastNumbers,
    /// The sessions of past incarnations, oldest first: workers' events of them may still arrive.
    past: VecDeque<(Incarnation, SessionId)>,
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

    /// Notes the session of lanes that have ended.
    pub fn remember(&mut self, incarnation: Incarnation, session: SessionId) {
        if self.past.len() == PAST_INCARNATIONS {
            self.past.pop_front();
        }
        self.past.push_back((incarnation, session));
    }

    /// Returns the session of lanes that have ended; [`SessionId::NONE`] if it is not known.
    pub fn past_session(&self, incarnation: Incarnation) -> SessionId {
        let found = self.past.iter().find(|(past, _)| *past == incarnation);
        found.map_or(SessionId::NONE, |(_, session)| *session)
    }
}
