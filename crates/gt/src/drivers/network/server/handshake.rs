//! The server's handshake: it welcomes new peers, resumes the sessions of clients that reconnect,
//! and turns others away.

use gt_ir::message::{Hello, Message, Resume, Role, Welcome};
use gt_net::server::{LinkId, Proven};
use gt_net::{NetError, codec};

use super::Server;
use super::journal::Later;
use super::peers::ResumeRefused;

impl Server {
    /// Handles a peer's hello. Returns whether to pass it to the dispatcher.
    pub(super) fn handshake(
        &mut self,
        link: &LinkId,
        proven: Option<Proven>,
        hello: &mut Hello,
    ) -> Result<bool, NetError> {
        if let Some(badge) = &hello.badge
            && !self.key.as_ref().is_some_and(|key| key.proves(badge))
        {
            let reason = format!(
                "the key does not prove that its user is '{}'\n  hint: ask for another one, by `gt key --user` of this server's key",
                badge.user.escape_debug()
            );
            self.turn_away(link, reason, "its key proves nothing")?;
            return Ok(false);
        }
        if hello.badge.is_none() && proven.is_some_and(|proven| proven.is_user) {
            let reason = "the key is part of a user's key, and does not say whose\n  hint: use the whole key, as `gt key --user` printed it".to_string();
            self.turn_away(link, reason, "its key names nobody")?;
            return Ok(false);
        }
        if self.peers.id(link).is_some() {
            return Ok(true);
        }
        let role = proven.map(|proven| proven.role);
        match hello.resume.take() {
            Some(resume) if role.unwrap_or(hello.role) == Role::Client => {
                let greeting = Box::new((hello.clone(), *resume));
                self.once_durable(Later::Resume(link.clone(), greeting))?;
                Ok(false)
            }
            resume => {
                hello.resume = resume;
                self.peers.add(link.clone(), role, hello);
                self.link.admit(link);
                Ok(true)
            }
        }
    }

    /// Refuses a link, reads no more from it, and removes its peer if it has one.
    pub(super) fn turn_away(
        &mut self,
        link: &LinkId,
        reason: String,
        why: &str,
    ) -> Result<(), NetError> {
        self.link.send(link, codec::encode(&Message::Goodbye { reason }), 0)?;
        self.link.mute(link);
        if let Some(peer) = self.peers.id(link) {
            self.forget(peer, why);
        }
        Ok(())
    }

    /// Resumes a client's session on another link.
    pub(super) fn resume(
        &mut self,
        link: LinkId,
        hello: &Hello,
        given: &Resume,
    ) -> Result<(), NetError> {
        let (id, missed, is_renewed) = match self.peers.resume(link.clone(), hello, given) {
            Ok(resumed) => resumed,
            Err(ResumeRefused { reason, ended }) => {
                let Some(reason) = reason else { return Ok(()) };
                ended.into_iter().for_each(|peer| self.forget(peer, &reason));
                return self.turn_away(&link, reason, "");
            }
        };
        self.link.admit(&link);
        let resume =
            self.peers.get_mut(id).and_then(|peer| Some(Box::new(peer.client.as_mut()?.resume())));
        let (grace, is_kept) = (self.grace, self.journal.is_some());
        let welcome = Welcome { resume, grace, is_kept, is_renewed, ..Welcome::default() };
        let first = codec::encode(&Message::Welcome(welcome));
        for frames in std::iter::once(first).chain(missed) {
            if !self.link.send(&link, frames, usize::MAX)? {
                break;
            }
        }
        match is_renewed {
            true => self.dispatcher.returned(self.started.elapsed(), id, given),
            false => self.dispatcher.set_away(id, false),
        }
        Ok(())
    }
}
