//! Incoming messages of a server.

use bytes::Bytes;
use gt_dispatcher::{FromPeer, PeerId};
use gt_ir::message::{
    Acknowledge, ClientToServer, Frame, Message, OperatorToServer, Role, WatcherToServer,
    WorkerToServer,
};
use gt_ir::snapshot::{Backup, Owner, Unkept};
use gt_net::NetError;
use gt_net::codec::{self, DecodeError};
use gt_net::server::{LinkId, Proven};

use super::Server;
use super::journal::Later;

impl Server {
    /// Handles a message of a link.
    pub(super) fn receive(
        &mut self,
        link: LinkId,
        proven: Option<Proven>,
        frames: Vec<Bytes>,
    ) -> Result<(), NetError> {
        let handled = match self.peers.id(&link) {
            None => match codec::decode(&frames) {
                Ok(hello) => return self.handshake(&link, proven, hello),
                Err(DecodeError::WrongKind { .. }) => {
                    let reason = "this server does not know the connection: connect again";
                    return self.turn_away(&link, reason.into(), "");
                }
                Err(DecodeError::OtherProtocol(stranger)) => {
                    return self.turn_away(&link, stranger.refusal("server"), "");
                }
                Err(error) => Err(error),
            },
            Some(peer) => match peer.role {
                Role::Client => self.receive_from_client(peer, frames),
                Role::Worker => self.receive_from_worker(peer, &frames),
                Role::Watcher => codec::decode_frame::<WatcherToServer>(&frames).map(|frame| {
                    self.handle(peer, frame);
                    None
                }),
                Role::Operator => codec::decode_frame::<OperatorToServer>(&frames).map(|frame| {
                    self.handle(peer, frame);
                    None
                }),
            },
        };
        match handled {
            Ok(receipt) => {
                self.keep()?;
                receipt.map_or(Ok(()), |receipt| self.once_durable(receipt))
            }
            Err(error) => {
                let reason = format!(
                    "the server could not read a message: {error}\n  hint: install the same version of gt on both sides"
                );
                self.turn_away(&link, reason, "it sent a damaged message")
            }
        }
    }

    /// Handles what a client sends. Returns the receipt that is due, to be sent once the message is
    /// durable.
    fn receive_from_client(
        &mut self,
        id: PeerId,
        frames: Vec<Bytes>,
    ) -> Result<Option<Later>, DecodeError> {
        let Some(client) = self.peers.client_mut(id) else { return Ok(None) };
        if let Some(Acknowledge { received }) = codec::decode_acknowledgement(&frames)? {
            if !client.outgoing.acknowledge(received) {
                self.forget(id, "it acknowledged messages that it was not sent");
            }
            return Ok(None);
        }
        let frame = codec::decode_frame(&frames)?;
        client.has_returned();
        let due = client.incoming.take(&frames);
        let received = client.incoming.received();
        match frame {
            Frame::Message(ClientToServer::Stream(batch)) => {
                let now = self.started.elapsed();
                self.dispatcher.handle_stream(now, id, batch, frames, received);
            }
            frame => self.handle(id, frame),
        }
        Ok(due.map(|received| Later::Receipt(id, received)))
    }

    fn receive_from_worker(
        &mut self,
        id: PeerId,
        frames: &[Bytes],
    ) -> Result<Option<Later>, DecodeError> {
        let frame = match codec::decode_frame(frames)? {
            Frame::Message(WorkerToServer::Backup(backup)) => {
                Frame::Message(self.store_backup(backup))
            }
            frame => frame,
        };
        self.handle(id, frame);
        Ok(None)
    }

    /// Passes a peer's message, or the end of its link, to the dispatcher.
    fn handle<M: Message + Into<FromPeer>>(&mut self, id: PeerId, frame: Frame<M>) {
        let now = self.started.elapsed();
        match frame {
            Frame::Message(message) => self.dispatcher.handle(now, id, message),
            Frame::Goodbye(goodbye) => {
                self.dispatcher.handle(now, id, goodbye);
                self.peers.remove(id);
            }
        }
    }

    /// Stores values of a snapshot on disk. Returns the message for the dispatcher.
    fn store_backup(&self, mut backup: Box<Backup>) -> WorkerToServer {
        match self.backups.keep(&mut backup) {
            Ok(()) => WorkerToServer::Backup(backup),
            Err(reason) => {
                let (Owner { session, slot }, snapshot) = (backup.owner, backup.snapshot);
                let result = Err(Unkept::Refused(reason));
                WorkerToServer::BackupStored { session, slot, snapshot, result }
            }
        }
    }
}
