//! Outgoing messages of a server.

use gt_dispatcher::{PeerId, REJOIN_WITHIN};
use gt_ir::message::{Message, Role};
use gt_ir::{Content, WorkerCommand};
use gt_net::{NetError, codec};

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
    fn send(&mut self, id: PeerId, message: Message) -> Result<(), NetError> {
        let Some(peer) = self.peers.get_mut(id) else { return Ok(()) };
        let Some(client) = &mut peer.client else { return self.transmit(id, message) };
        match (&mut client.held, &message, &mut self.journal) {
            (held @ Some(_), Message::Goodbye { .. }, _) => *held = None,
            (Some(held), ..) => {
                held.push(message);
                return Ok(());
            }
            (None, Message::Welcome(_), Some(journal)) => {
                let warning = journal.warning();
                if journal.defer(Later::Welcome(id)).is_none() {
                    client.held = Some(vec![message]);
                    return Ok(());
                }
                self.transmit(id, message)?;
                let notice = warning.map(|text| Message::Notice { text });
                return notice.map_or(Ok(()), |notice| self.transmit(id, notice));
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
    fn transmit(&mut self, id: PeerId, message: Message) -> Result<(), NetError> {
        let Some(peer) = self.peers.get(id) else { return Ok(()) };
        // Where machines have no tokens, no peer is known to be on this machine.
        let is_local = !self.machine.is_empty() && peer.machine == self.machine;
        let mut message = if is_local { message } else { self.localize(message) };
        let grace = self.grace;
        let Some(peer) = self.peers.get_mut(id) else { return Ok(()) };
        let most = BACKLOG[usize::from(peer.role == Role::Worker)];
        let goodbye = matches!(message, Message::Goodbye { .. });
        let mut is_counted = !goodbye;
        if let Message::Welcome(welcome) = &mut message {
            welcome.is_kept = self.journal.is_some();
            if let Some(client) = &mut peer.client {
                let resume = Some(Box::new(client.resume()));
                (welcome.resume, welcome.grace, is_counted) = (resume, grace, false);
            } else if welcome.is_kept {
                welcome.grace = REJOIN_WITHIN;
            }
        }
        let frames = codec::encode(&message);
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
        if goodbye || is_behind || !taken && !may_return {
            self.forget(id, "it does not take its messages");
        }
        Ok(())
    }

    /// Replaces shared memory by inline data in messages to other machines.
    fn localize(&mut self, mut message: Message) -> Message {
        let mut carry = |content: &mut Content| {
            let placeholder = Content::Data(gt_ir::TensorData {
                dtype: gt_ir::DType::U8,
                shape: gt_ir::Shape::SCALAR,
                bytes: bytes::Bytes::from_static(&[0]),
            });
            let original = content.clone();
            match blocks::receive(std::mem::replace(content, placeholder)) {
                Ok((carried, token)) => {
                    *content = carried;
                    if let Some(token) = token {
                        let release = Message::Release { token };
                        self.dispatcher.handle(
                            self.started.elapsed(),
                            PeerId::NOBODY,
                            Role::Watcher,
                            release,
                        );
                    }
                }
                // The receiver will report that it cannot map it.
                Err(_) => *content = original,
            }
        };
        match &mut message {
            Message::Work { commands, .. } => commands.iter_mut().for_each(|command| {
                if let WorkerCommand::Create(create) = command {
                    carry(&mut create.content);
                }
            }),
            Message::Value { result: Ok(content), .. } => carry(content),
            _ => {}
        }
        message
    }
}
