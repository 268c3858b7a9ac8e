//! Sessions: the state of each client.
//!
//! - [`session`]: the session of one client, in parts: its identity, its queue, the state of its
//!   planning; credit, unread values and lineage have modules of their own.
//! - [`lines`]: the lines of its program, for watchers;
//!   [`hot_path`]: what is inside a hot path.
//! - [`inspected`]: its details while watchers ask for them, of which [`stream_counts`] counts
//!   instructions and [`explaining`] records plans.
//! - [`account`]: what it uses; [`phase`]: whether it begins, runs, or waits to be restored.

mod account;
mod explaining;
mod hot_path;
mod inspected;
mod lines;
mod phase;
mod session;
mod stream_counts;

pub(crate) use account::{DeadlineWarning, SlotShortage, TimeLimit};
pub(crate) use explaining::StepRecording;
pub(crate) use inspected::InspectedSession;
pub(crate) use lines::SourceLines;
pub(crate) use phase::{AwaitedWorkers, Phase, REJOIN};
pub(crate) use session::{ClientSession, Identity, Planning};

use std::collections::BTreeMap;

use gt_ir::entitlement::{Entitlement, ShareWeights};
use gt_ir::{Incarnation, SessionId};

use crate::numbers::SessionNumbers;
use crate::peer::PeerId;

/// All sessions, in the order of their arrival.
#[derive(Default)]
pub(crate) struct Sessions {
    by_peer: BTreeMap<PeerId, ClientSession>,
    pub numbers: SessionNumbers,
    /// The device time that ended sessions have used, in nanoseconds, by team and user.
    past: BTreeMap<(String, String), u64>,
}

impl Sessions {
    /// Opens a session.
    pub fn add(&mut self, identity: Identity) -> &mut ClientSession {
        let peer = identity.peer;
        self.by_peer.entry(peer).or_insert_with(|| ClientSession::new(identity))
    }

    /// Removes an ended session, whose device time stays counted.
    pub fn remove(&mut self, peer: PeerId) -> Option<ClientSession> {
        let session = self.by_peer.remove(&peer)?;
        let Identity { incarnation, number, label, .. } = &session.identity;
        self.numbers.remember(*incarnation, *number, label.clone());
        let Entitlement { team, user, .. } = &session.identity.entitlement;
        *self.past.entry((team.clone(), user.clone())).or_default() += session.account.device;
        Some(session)
    }

    /// Returns the device time that ended sessions have used, in nanoseconds, by team and user.
    pub fn past(&self) -> &BTreeMap<(String, String), u64> {
        &self.past
    }

    pub fn get(&self, peer: PeerId) -> Option<&ClientSession> {
        self.by_peer.get(&peer)
    }

    pub fn get_mut(&mut self, peer: PeerId) -> Option<&mut ClientSession> {
        self.by_peer.get_mut(&peer)
    }

    /// Returns the session with a number.
    pub fn by_number(&self, number: SessionId) -> Option<&ClientSession> {
        self.by_peer.values().find(|session| session.identity.number == number)
    }

    pub fn by_number_mut(&mut self, number: SessionId) -> Option<&mut ClientSession> {
        self.by_peer.values_mut().find(|session| session.identity.number == number)
    }

    /// Returns the session whose lanes have an incarnation.
    pub fn by_incarnation(&self, incarnation: Incarnation) -> Option<&ClientSession> {
        self.by_peer.values().find(|session| session.identity.incarnation == incarnation)
    }

    pub fn by_incarnation_mut(&mut self, incarnation: Incarnation) -> Option<&mut ClientSession> {
        self.by_peer.values_mut().find(|session| session.identity.incarnation == incarnation)
    }

    /// Returns the session of lanes, also of past ones; [`SessionId::NONE`] if it is not known.
    pub fn session_of(&self, incarnation: Incarnation) -> SessionId {
        match self.by_incarnation(incarnation) {
            Some(session) => session.identity.number,
            None => self.numbers.past_session(incarnation),
        }
    }

    /// Returns the name of a session, also of one that has ended recently.
    pub fn name(&self, number: SessionId) -> Option<&str> {
        match self.by_number(number) {
            Some(session) => Some(&session.identity.label),
            None => self.numbers.past_name(number),
        }
    }

    /// Returns the session that a user has given a name.
    pub fn named<'a>(&'a self, user: &'a str, name: &str) -> Option<&'a ClientSession> {
        let has_name = |session: &&ClientSession| {
            session.identity.name.as_ref().is_some_and(|of| of.name == name)
        };
        self.of_user(user).find(has_name)
    }

    /// Returns the sessions of a user, in all teams.
    pub fn of_user<'a>(&'a self, user: &'a str) -> impl Iterator<Item = &'a ClientSession> {
        self.iter().filter(move |session| session.identity.entitlement.user == user)
    }

    /// Gives a session to another client.
    pub fn hand_over(&mut self, from: PeerId, to: PeerId) -> Option<&mut ClientSession> {
        let mut session = self.by_peer.remove(&from)?;
        session.identity.peer = to;
        Some(self.by_peer.entry(to).or_insert(session))
    }

    pub fn iter(&self) -> impl Iterator<Item = &ClientSession> {
        self.by_peer.values()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut ClientSession> {
        self.by_peer.values_mut()
    }

    /// Returns the weights, by which each session has a part of a worker's time if all have work.
    pub fn weights(&self) -> ShareWeights<'_> {
        ShareWeights::of(self.by_peer.values().map(|session| &session.identity.entitlement))
    }

    pub fn len(&self) -> usize {
        self.by_peer.len()
    }

    pub fn peers(&self) -> Vec<PeerId> {
        self.by_peer.keys().copied().collect()
    }
}
