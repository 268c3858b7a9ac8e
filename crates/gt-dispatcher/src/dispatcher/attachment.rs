//! Sessions that outlive their clients: a named session is detached when its client leaves, and
//! another client of the same user attaches to it.

use std::time::Duration;

use gt_ir::message::{Answer, ClientHello, Failure, Goodbye, Reply, is_same_token};
use gt_ir::{ClientCommand, Detach, SessionOrigin, SourceId};

use super::Dispatcher;
use crate::named::SessionName;
use crate::observability::log::LineKind;
use crate::peer::PeerId;
use crate::sessions::{ClientSession, Identity, SourceLines};

/// How long a client waits for a session whose client may be gone: a silent connection is noticed
/// within 7.5 s (`gt_net`).
const HOLDER_WAIT: Duration = Duration::from_secs(9);

/// A client that waits for a session that another one holds.
pub(super) struct WaitingClient {
    peer: PeerId,
    hello: ClientHello,
    since: Duration,
}

/// What becomes of a client that wants a session.
enum Attachment {
    /// It begins: the client wants a new one, or there is none of the name.
    Begin,
    /// It continues, from the client that had it.
    Take(PeerId),
    /// Its client may be gone.
    Wait,
}

/// Formats a user for messages.
fn of_user(user: &str) -> String {
    if user.is_empty() { "without a user's key".into() } else { format!("of user {user}") }
}

impl Dispatcher {
    /// Gives a client, which wants it since some time, its session: a new one, or a named one. Or has
    /// the client wait for it, or refuses the client.
    pub(super) fn give_session(
        &mut self,
        since: Duration,
        now: Duration,
        peer: PeerId,
        hello: ClientHello,
    ) {
        match self.attachment(now, now.saturating_sub(since), &hello) {
            Ok(Attachment::Begin) => match self.add_client(now, peer, hello) {
                Ok(()) => self.welcome(now, peer, false),
                Err(reason) => self.refuse(now, peer, reason),
            },
            Ok(Attachment::Take(from)) => {
                self.hand_over(now, from, peer, hello);
                self.welcome(now, peer, true);
            }
            Ok(Attachment::Wait) => self.waiting.push(WaitingClient { peer, hello, since }),
            Err(reason) => self.refuse(now, peer, reason),
        }
    }

    /// Returns what becomes of a client that has waited for its session for this long.
    ///
    /// # Errors
    /// Why it cannot have the session.
    fn attachment(
        &self,
        now: Duration,
        waited: Duration,
        hello: &ClientHello,
    ) -> Result<Attachment, String> {
        let Some(attach) = &hello.attach else { return Ok(Attachment::Begin) };
        let (name, user) = (&attach.name, hello.user());
        let Some(session) = self.peers.sessions.named(user, name) else {
            return match attach.or_create {
                true => Ok(Attachment::Begin),
                false => Err(self.unknown_session(user, name)),
            };
        };
        let Identity { peer, name: of, held_since, entitlement, .. } = &session.identity;
        let token = of.as_ref().and_then(|of| of.token);
        if let Some(token) = token
            && !attach.token.is_some_and(|given| is_same_token(given, token))
        {
            return Err(format!(
                "the session '{name}' is private, and {}\n  hint: gt.attach({name:?}, token=TOKEN) with the token that gt.detach returned",
                if attach.token.is_some() {
                    "the token is another one"
                } else {
                    "no token is given"
                }
            ));
        }
        let is_free = session.identity.is_detached || entitlement.is_away || attach.take_over;
        if is_free {
            return Ok(Attachment::Take(*peer));
        }
        if attach.or_create && waited < HOLDER_WAIT {
            return Ok(Attachment::Wait);
        }
        let held = now.saturating_sub(*held_since).as_secs();
        Err(format!(
            "the session '{name}' is held by {}, for {held} s\n  hint: end that program, or gt.attach({name:?}, take_over=True) takes the session from it",
            session.identity.holder()
        ))
    }

    fn unknown_session(&self, user: &str, name: &str) -> String {
        let names = self.peers.sessions.of_user(user).filter_map(|it| it.identity.name.as_ref());
        let names: Vec<String> = names.map(|of| format!("'{}'", of.name)).collect();
        let others = match names.as_slice() {
            [] => format!("no session {} has a name", of_user(user)),
            names => format!("the sessions {} are {}", of_user(user), names.join(", ")),
        };
        format!(
            "there is no session '{name}': {others}\n  hint: gt.attach({name:?}, or_create=True) begins it"
        )
    }

    /// Gives a session to another client.
    fn hand_over(&mut self, now: Duration, from: PeerId, to: PeerId, hello: ClientHello) {
        let Some(session) = self.peers.sessions.get(from) else { return };
        if !session.identity.is_detached {
            let taker = hello.origin.cleaned().holder(hello.user());
            let reason = format!("the session was taken over by {taker}");
            self.outbox.push(from, Goodbye { reason: reason.clone() });
            self.leave(now, from, &reason);
        }
        let Some(session) = self.peers.sessions.hand_over(from, to) else { return };
        session.disown();
        session.queue.received = 0;
        // The lines and variables of another program.
        (session.lines, session.last_error) = (SourceLines::default(), None);
        session.inspected = None;
        session.identity.hand_over(now, hello);
        let identity = &session.identity;
        self.scheduler.retire(from);
        self.scheduler.admit(to, &identity.entitlement);
        let has_queued = !session.queue.batches.is_empty();
        let details = format_args!("session={} attached", identity.number);
        self.observability.write(now, LineKind::Connect, &identity.label, "Link", 0, details);
        self.journal.add(|| identity.record());
        if has_queued {
            self.scheduler.wake(to);
        }
        self.trials.hand_over(from, to);
        self.observability.forget_hot_paths(identity.number);
        self.mark_away(to, false);
    }

    /// Leaves a named session without a client; one that waits for it gets it.
    pub(super) fn detach(&mut self, now: Duration, peer: PeerId, reason: &str) {
        self.leave(now, peer, reason);
        self.admit_waiting(now);
    }

    /// Leaves a named session without a client: what it does not keep is freed once all that its
    /// client has sent is planned.
    fn leave(&mut self, now: Duration, peer: PeerId, reason: &str) {
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        session.disown();
        let identity = &mut session.identity;
        (identity.held_since, identity.is_detached) = (now, true);
        self.journal.add(|| identity.record());
        let details = format_args!("session={} detached reason={reason}", identity.number);
        self.observability.write(now, LineKind::Disconnect, &identity.label, "Link", 0, details);
        if let Some(awaited) = session.phase.awaited_mut() {
            awaited.since.get_or_insert(now);
        }
        self.answers.forget_client(peer);
        self.mark_away(peer, true);
        self.receive(now, peer, vec![ClientCommand::Abandon], None);
        let lineage = self.peers.sessions.get(peer).and_then(|session| session.lineage.as_ref());
        if let Some(pending) = lineage.and_then(|lineage| lineage.pending.as_ref()) {
            // Its client cannot confirm it.
            let number = pending.number;
            self.end_snapshot(peer);
            self.snapshot_confirmed(peer, number);
        }
    }

    /// Names a session, which continues without its client from then on.
    pub(super) fn name_session(&mut self, peer: PeerId, detach: Detach) {
        let Detach { request, name, token } = detach;
        let result = match self.set_name(peer, &name, token) {
            Ok(()) => Ok(Reply::Detached),
            Err(reason) => Err(Failure::new("detach", reason, "", SourceId::default())),
        };
        self.outbox.push(peer, Answer { request, result });
    }

    fn set_name(&mut self, peer: PeerId, name: &str, token: Option<u128>) -> Result<(), String> {
        let name = SessionOrigin::check(name)?;
        let Some(session) = self.peers.sessions.get(peer) else { return Ok(()) };
        let user = &session.identity.entitlement.user;
        if let Some(other) = self.peers.sessions.named(user, &name)
            && other.identity.peer != peer
        {
            return Err(format!(
                "there is a session '{name}' {} already ({})\n  hint: choose another name, or end that one with `gt sessions end`",
                of_user(user),
                other.identity.label
            ));
        }
        let Some(session) = self.peers.sessions.get_mut(peer) else { return Ok(()) };
        let before = session.identity.name.as_ref().filter(|before| before.name == name);
        // A private session stays private.
        let token = token.or(before.and_then(|before| before.token));
        session.identity.rename(Some(SessionName { name, token }));
        let identity = &session.identity;
        self.journal.add(|| identity.record());
        Ok(())
    }

    /// Gives sessions to the clients that wait for them, and refuses those that have waited too
    /// long.
    pub(super) fn admit_waiting(&mut self, now: Duration) {
        if self.waiting.is_empty() {
            return;
        }
        for WaitingClient { peer, hello, since } in std::mem::take(&mut self.waiting) {
            self.give_session(since, now, peer, hello);
        }
    }

    /// Forgets a client that waits for a session.
    pub(super) fn forget_waiting(&mut self, peer: PeerId) {
        self.waiting.retain(|waiting| waiting.peer != peer);
    }

    /// Returns when the first client has waited for a session for too long.
    pub(super) fn next_waiting(&self) -> Option<Duration> {
        self.waiting.iter().map(|waiting| waiting.since + HOLDER_WAIT).min()
    }
}

impl ClientSession {
    /// Forgets what its client is owed: credit, and answers.
    fn disown(&mut self) {
        self.flow.disown();
        self.unread.clear();
        for batch in &mut self.queue.batches {
            batch.weight = 0;
            let is_save = |command: &ClientCommand| matches!(command, ClientCommand::Save(_));
            batch.commands.retain(|command| command.request().is_none() || is_save(command));
        }
        self.queue.batches.retain(|batch| !batch.commands.is_empty());
        if let Some(lineage) = &mut self.lineage {
            lineage.log.forget_client();
        }
    }
}
