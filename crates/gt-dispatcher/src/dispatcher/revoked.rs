//! Users whose keys the policy revokes: their sessions end, and what they have published goes to an
//! heir, or ends.

use std::time::Duration;

use gt_ir::SessionId;

use super::Dispatcher;
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

    /// Ends the sessions of users whose keys are revoked, and their publications that have no heir.
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
        let revoked = self.library.iter().filter(|of| self.rules.is_revoked(&of.user));
        let revoked: Vec<SessionId> = revoked.map(|of| of.id).collect();
        for id in revoked {
            self.inherit(now, id);
        }
        self.end_withdrawn(now);
    }

    /// Gives a publication of a revoked user to the heir, or withdraws it.
    fn inherit(&mut self, now: Duration, id: SessionId) {
        let Some(of) = self.library.get(id) else { return };
        let (user, name) = (of.user.clone(), of.version_name());
        match self.rules.heir(&user).map(str::to_string) {
            Some(heir) => {
                self.library.give(id, &heir);
                let text = format_args!("from={name}");
                let Some(of) = self.library.get(id) else { return };
                let name = of.version_name();
                self.observability.write(now, LineKind::Send, &name, "Inherited", 0, text);
                self.journal_publication(id);
            }
            None => self.withdraw_version(now, id, "its owner's key was revoked"),
        }
    }
}
