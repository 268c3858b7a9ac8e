//! The server's handshake: it welcomes new peers, resumes the sessions of clients that reconnect,
//! and turns others away.

use gt_ir::message::{ClientHello, ClientWelcome, Goodbye, Hello, Resume, Role, Welcome};
use gt_net::server::{LinkId, Proven};
use gt_net::{NetError, codec};

use super::Server;
use super::journal::Later;
use super::peers::ResumeRefused;

impl Server {
    /// Handles the hello of a new link: passes it to the dispatcher, resumes a client's session, or
    /// turns the link away.
    pub(super) fn handshake(
        &mut self,
        link: &LinkId,
        proven: Option<Proven>,
        mut hello: Hello,
    ) -> Result<(), NetError> {
        let role = hello.role();
        // Operators and users may watch, and users operate on sessions of their own.
        let is_allowed = |proven: &Proven| {
            let may_watch = proven.is_user || proven.role == Role::Operator;
            let may_operate = proven.is_user && role == Role::Operator;
            proven.role == role || may_operate || may_watch && role == Role::Watcher
        };
        if let Some(proven) = proven.filter(|proven| !is_allowed(proven)) {
            let (key, said) = (proven.role.name(), role.name());
            let reason = format!(
                "the key is a {key}'s, and the hello a {said}'s\n  hint: install the same version of gt on both sides"
            );
            return self.turn_away(link, reason, "");
        }
        if let Some(badge) = hello.badge()
            && !self.key.as_ref().is_some_and(|key| key.proves(badge))
        {
            let reason = format!(
                "the key does not prove that its user is '{}'\n  hint: ask for another one, by `gt key --user` of this server's key",
                badge.user.escape_debug()
            );
            return self.turn_away(link, reason, "its key proves nothing");
        }
        if hello.badge().is_none() && proven.is_some_and(|proven| proven.is_user) {
            let reason = "the key is part of a user's key, and does not say whose\n  hint: use the whole key, as `gt key --user` printed it".to_string();
            return self.turn_away(link, reason, "its key names nobody");
        }
        if let Hello::Client(client) = &mut hello
            && let Some(resume) = client.resume.take()
        {
            let greeting = Box::new((client.clone(), *resume));
            return self.once_durable(Later::Resume(link.clone(), greeting));
        }
        // The hello of a worker that is back may arrive before the loss of its earlier connection.
        if let Hello::Worker(worker) = &hello
            && self.dispatcher.is_connected(worker)
            && self.has_stood_still()
        {
            self.is_given_up = true;
            return Ok(());
        }
        let id = self.peers.add(link.clone(), &mut hello);
        self.link.admit(link);
        self.dispatcher.handle(self.started.elapsed(), id, hello);
        self.keep()
    }

    /// Refuses a link, reads no more from it, and removes its peer if it has one.
    pub(super) fn turn_away(
        &mut self,
        link: &LinkId,
        reason: String,
        why: &str,
    ) -> Result<(), NetError> {
        self.link.send(link, codec::encode(&Goodbye { reason }), 0)?;
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
        hello: &ClientHello,
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
        let (grace, is_kept) = (self.grace, self.journal.is_some());
        let mut welcome = ClientWelcome { grace, is_kept, is_renewed, ..ClientWelcome::default() };
        self.peers.client_mut(id).into_iter().for_each(|client| client.fill(&mut welcome));
        let first = codec::encode(&Welcome::Client(welcome));
        for frames in std::iter::once(first).chain(missed) {
            if !self.link.send(&link, frames, usize::MAX)? {
                break;
            }
        }
        match is_renewed {
            true => self.dispatcher.client_returned(self.started.elapsed(), id, given),
            false => self.dispatcher.set_away(self.started.elapsed(), id, false),
        }
        Ok(())
    }
}
