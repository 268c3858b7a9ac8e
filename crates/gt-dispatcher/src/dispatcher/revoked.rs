//! Users whose keys the policy revokes: their sessions end, and what they have published goes to an
//! heir, or ends.

use std::collections::BTreeSet;
use std::time::Duration;

use gt_ir::SessionId;
use gt_ir::message::ServerToClient;

use super::Dispatcher;
use crate::library::{Publication, PublicationStage};
use crate::observability::log::LineKind;

impl Dispatcher {
    /// Returns why a user's key is refused, if the policy revokes it.
    pub(super) fn revoked(&self, user: &str) -> Option<String> {
        self.rules.is_revoked(user).then(|| {
            format!(
                "the key of user '{user}' is revoked by the server's policy\n  hint: ask the operator of the cluster"
            )
        })
    }

    /// Ends the sessions of users whose keys are revoked, and the connections of their watchers and
    /// operators.
    pub(super) fn end_revoked(&mut self, now: Duration) {
        if self.rules.revoked.is_empty() {
            return;
        }
        for peer in self.peers.sessions.peers() {
            let Some(session) = self.peers.sessions.get(peer) else { continue };
            if let Some(reason) = self.revoked(&session.identity.entitlement.user) {
                self.refuse(now, peer, reason);
            }
        }
        self.end_revoked_operators(now);
        // They are forgotten when their links end: until then, their user limits what they see.
        for (peer, user) in self.observability.watching_users() {
            if let Some(reason) = self.revoked(&user) {
                self.refuse(now, peer, reason);
            }
        }
        self.bequeath(now);
    }

    /// Gives what revoked users have published to their heirs.
    pub(super) fn bequeath(&mut self, now: Duration) {
        if self.rules.revoked.is_empty() {
            return;
        }
        let is_left = |of: &&Publication| {
            of.stage != PublicationStage::Withdrawn && self.rules.is_revoked(&of.user)
        };
        let left = self.library.iter().filter(is_left);
        let users: BTreeSet<String> = left.map(|of| of.user.clone()).collect();
        for user in users {
            match self.rules.heir(&user).map(str::to_string) {
                Some(heir) => self.give_to(now, &user, &heir),
                None => self.withdraw_all(now, &user),
            }
        }
    }

    /// Gives what a revoked user has published to the heir.
    fn give_to(&mut self, now: Duration, user: &str, heir: &str) {
        for (id, before) in self.library.give(user, heir) {
            let Some(of) = self.library.get(id) else { continue };
            let name = of.version_name();
            let details = format_args!("from={before}");
            self.observability.write(now, LineKind::Send, &name, "Inherited", 0, details);
            self.journal_publication(id);
            let text = format!("'{before}' is yours now, as '{name}': its owner's key is revoked");
            for session in self.peers.sessions.of_user(heir) {
                let notice = ServerToClient::Notice { text: text.clone() };
                self.outbox.push(session.identity.peer, notice);
            }
        }
    }

    /// Withdraws what a revoked user has published.
    fn withdraw_all(&mut self, now: Duration, user: &str) {
        let of_user = self.library.iter().filter(|of| of.user == user);
        let all: Vec<SessionId> = of_user.map(|of| of.id).collect();
        for id in all {
            self.withdraw_version(now, id, "its owner's key was revoked");
        }
    }
}
