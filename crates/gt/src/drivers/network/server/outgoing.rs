//! Outgoing messages of a server.

use gt_dispatcher::{PeerId, REJOIN_WITHIN, ToPeer};
use gt_ir::message::{Answer, Reply, Role, ServerToClient, ServerToWorker, Welcome};
use gt_ir::{Content, WorkerCommand};
use gt_net::NetError;

use super::journal::Later;
use super::{BACKLOG, Server};
use crate::drivers::network::blocks;

impl Server {
    pub(super) fn send_all(&mut self) -> Result<(), NetError> {
        loop {
            let mut out = Vec::new();
            self.dispatcher.take_outbox(&mut out);
            if out.is_empty() {
                return Ok(());
            }
            for (peer, message) in out {
                self.send(peer, message)?;
            }
        }
    }

    /// Sends a message to a peer; to a new client once its session is durable.
    fn send(&mut self, id: PeerId, message: ToPeer) -> Result<(), NetError> {
        let Some(peer) = self.peers.get_mut(id) else { return Ok(()) };
        let Some(client) = &mut peer.client else { return self.transmit(id, message) };
        match (&mut client.held, &message, &mut self.journal) {
            (held @ Some(_), ToPeer::Goodbye(_), _) => *held = None,
            (Some(held), ..) => {
                held.push(message);
                return Ok(());
            }
            (None, ToPeer::Welcome(_), Some(journal)) => {
                let warning = journal.warning();
                if journal.defer(Later::Welcome(id)).is_none() {
                    client.held = Some(vec![message]);
                    return Ok(());
                }
                self.transmit(id, message)?;
                let notice = warning.map(|text| ServerToClient::Notice { text }.into());
                return notice.map_or(Ok(()), |notice| self.transmit(id, notice));
            }
            (None, ToPeer::Client(ServerToClient::Answer(answer)), Some(journal))
                if matches!(answer.result, Ok(Reply::Detached)) =>
            {
                let later = journal.defer(Later::Send(id, Box::new(message)));
                return later.map_or(Ok(()), |later| self.act(later));
            }
            _ => {}
        }
        self.transmit(id, message)
    }

    /// Sends a new client its welcome, and the messages after it: its session is durable.
    pub(super) fn welcome(&mut self, id: PeerId) -> Result<(), NetError> {
        let held = self.peers.get_mut(id).and_then(|peer| peer.client.as_mut()?.held.take());
        held.into_iter().flatten().try_for_each(|message| self.transmit(id, message))
    }

    /// Sends a message to a peer, or keeps it for a disconnected client that may return.
    pub(super) fn transmit(&mut self, id: PeerId, message: ToPeer) -> Result<(), NetError> {
        let Some(peer) = self.peers.get(id) else { return Ok(()) };
        // Where machines have no tokens, no peer is known to be on this machine.
        let is_local = !self.machine.is_empty() && peer.machine == self.machine;
        let mut message = if is_local { message } else { self.localize(message) };
        let grace = self.grace;
        let Some(peer) = self.peers.get_mut(id) else { return Ok(()) };
        let most = BACKLOG[usize::from(id.role == Role::Worker)];
        let goodbye = matches!(message, ToPeer::Goodbye(_));
        // Neither a welcome nor a goodbye is sent again on another link.
        let is_counted = !goodbye && !matches!(message, ToPeer::Welcome(_));
        match (&mut message, &mut peer.client) {
            (ToPeer::Welcome(Welcome::Client(welcome)), Some(client)) => {
                (welcome.grace, welcome.is_kept) = (grace, self.journal.is_some());
                client.fill(welcome);
            }
            (ToPeer::Welcome(Welcome::Worker(welcome)), _) if self.journal.is_some() => {
                welcome.grace = REJOIN_WITHIN;
            }
            _ => {}
        }
        let frames = message.encode();
        let mut is_behind = false;
        if let Some(client) = peer.client.as_mut().filter(|_| is_counted) {
            // Without the message itself, which may be large.
            is_behind = client.outgoing.bytes() > most;
            client.outgoing.push(frames.clone(), false);
        }
        let taken = match &peer.link {
            Some(link) => self.link.send(link, frames, most)?,
            None => true,
        };
        // A disconnected client is notified when it returns.
        let may_return = peer.client.is_some() && !is_behind;
        if !taken && !may_return && self.has_stood_still() {
            // The peer has closed its connection, and its loss has not been read yet.
            self.is_given_up = true;
            return Ok(());
        }
        if goodbye || is_behind || !taken && !may_return {
            self.forget(id, "it does not take its messages");
        }
        Ok(())
    }

    /// Replaces shared memory by inline data in messages to other machines.
    fn localize(&mut self, mut message: ToPeer) -> ToPeer {
        match &mut message {
            ToPeer::Worker(ServerToWorker::Work { commands, .. }) => {
                for command in commands {
                    if let WorkerCommand::Create(create) = command {
                        self.inline(&mut create.content);
                    }
                }
            }
            ToPeer::Client(ServerToClient::Answer(Answer {
                result: Ok(Reply::Value(content)),
                ..
            })) => self.inline(content),
            _ => {}
        }
        message
    }

    /// Maps content in shared memory. Content that cannot be mapped stays: the receiver reports it.
    fn inline(&mut self, content: &mut Content) {
        if let Ok((mapped, Some(token))) = blocks::receive(content.clone()) {
            *content = mapped;
            self.dispatcher.release_block(self.started.elapsed(), token);
        }
    }
}
