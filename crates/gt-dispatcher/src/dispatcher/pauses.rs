//! Sessions that operators, or their own users, have paused.

use std::time::Duration;

use gt_ir::message::ServerToClient;

use super::Dispatcher;
use super::weights::USUAL;
use crate::journal::JournalRecord;
use crate::paused::PausedBy;
use crate::peer::PeerId;
use crate::sessions::ClientSession;

impl Dispatcher {
    /// Pauses or resumes a session, or all of a user; of operators also those that begin later.
    pub(super) fn pause(
        &mut self,
        now: Duration,
        by: PausedBy,
        (user, name): (Option<&str>, Option<&str>),
        is_paused: bool,
    ) -> Result<String, String> {
        let peers = match (user, name) {
            (_, Some(name)) => vec![self.session_named(user, name)?],
            (Some(user), None) => self.pause_user(by, user, is_paused)?,
            (None, None) => {
                return Err(
                    "neither a session nor a user is named\n  hint: give one of both".into()
                );
            }
        };
        let (mut labels, mut refusal) = (Vec::new(), None);
        for peer in peers {
            match self.pause_session(by, peer, is_paused) {
                Ok(changed) => labels.extend(changed),
                Err(reason) => refusal = Some(reason),
            }
        }
        self.journal_orders();
        self.pump(now);
        let done = if is_paused { "paused" } else { "resumed" };
        match (labels.as_slice(), user, refusal) {
            ([], _, Some(refusal)) => Err(refusal),
            ([], Some(user), None) if name.is_none() && !self.has_session(user) => {
                Ok(format!("{done} user '{user}', who has no session"))
            }
            ([], ..) => Ok(format!("it is {done} already")),
            (labels, ..) => Ok(format!("{done} {}", labels.join(", "))),
        }
    }

    /// Notes that an operator has paused or resumed a user. Returns the clients of the user's
    /// sessions.
    fn pause_user(
        &mut self,
        by: PausedBy,
        user: &str,
        is_paused: bool,
    ) -> Result<Vec<PeerId>, String> {
        if by == PausedBy::Operator {
            self.check_user(user)?;
            match is_paused {
                true => self.paused.insert(user.to_string()),
                false => self.paused.remove(user),
            };
        }
        Ok(self.peers.sessions.of_user(user).map(|session| session.identity.peer).collect())
    }

    /// Pauses or resumes a session. Returns its label, if that changes it.
    ///
    /// # Errors
    /// An operator has paused what its user is to resume.
    fn pause_session(
        &mut self,
        by: PausedBy,
        peer: PeerId,
        is_paused: bool,
    ) -> Result<Option<String>, String> {
        let Some(session) = self.peers.sessions.get_mut(peer) else { return Ok(None) };
        let (before, label) = (session.identity.paused, session.identity.label.clone());
        if before == Some(PausedBy::Operator) && by == PausedBy::User && !is_paused {
            return Err(format!(
                "an operator has paused the session {label}\n  hint: an operator resumes it: ask one"
            ));
        }
        session.identity.paused = match (is_paused, before) {
            (false, _) => None,
            (true, Some(PausedBy::Operator)) => before,
            (true, _) => Some(by),
        };
        if before == session.identity.paused {
            return Ok(None);
        }
        let text = match is_paused {
            true => format!("{} has paused the session: what it computes waits", by.name()),
            false => format!("{} has resumed the session", by.name()),
        };
        self.outbox.push(peer, ServerToClient::Notice { text });
        Ok(Some(label))
    }

    fn has_session(&self, user: &str) -> bool {
        self.peers.sessions.of_user(user).next().is_some()
    }

    /// Returns the record of what operators have set, and of what users have paused.
    pub(super) fn orders(&self) -> JournalRecord {
        let weights = self.rules.weights.iter().map(|(user, weight)| (user.clone(), *weight));
        let paused = |by| {
            let is_it = move |session: &&ClientSession| session.identity.paused == Some(by);
            let found = self.peers.sessions.iter().filter(is_it);
            found.map(|session| session.identity.number).collect()
        };
        let identities = self.peers.sessions.iter().map(|session| &session.identity);
        let weighed = identities.filter(|of| of.entitlement.weight != USUAL);
        JournalRecord::Orders {
            weights: weights.collect(),
            weighed: weighed.map(|of| (of.number, of.entitlement.weight)).collect(),
            users: self.paused.iter().cloned().collect(),
            sessions: paused(PausedBy::Operator),
            by_users: paused(PausedBy::User),
        }
    }

    pub(super) fn journal_orders(&mut self) {
        let orders = self.orders();
        self.journal.add(|| orders);
    }
}
