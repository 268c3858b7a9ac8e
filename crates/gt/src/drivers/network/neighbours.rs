//! The other workers, as one of them knows them.

use std::collections::BTreeMap;

use gt_ir::message::{Failure, Message};
use gt_ir::{Content, Piece, SourceId, TransferId, WorkerId};
use gt_net::dealer::Wakeup;
use gt_net::peers::{PeerEvent, PeerLinks};
use gt_net::server::LinkId;
use gt_net::{NetError, codec, shm};
use rustc_hash::FxHashMap;

use super::blocks;

/// The links to other workers, and what is known of these.
pub struct Neighbours {
    own: WorkerId,
    peers: PeerLinks,
    machine: String,
    machines: BTreeMap<WorkerId, String>,
    /// Who is at the other end of a link.
    links: FxHashMap<LinkId, WorkerId>,
    /// What was sent on links that may not come about.
    sent: BTreeMap<WorkerId, Vec<TransferId>>,
}

/// How many of the last transfers are remembered for each neighbour.
const REMEMBERED: usize = 4096;

impl Neighbours {
    pub fn new(own: WorkerId, peers: PeerLinks) -> Neighbours {
        Neighbours {
            own,
            peers,
            machine: shm::machine_token(),
            machines: BTreeMap::new(),
            links: FxHashMap::default(),
            sent: BTreeMap::new(),
        }
    }

    /// What wakes a thread that waits for messages.
    pub fn wakeup(&self) -> Wakeup<'_> {
        self.peers.wakeup()
    }

    pub fn know(&mut self, worker: WorkerId, endpoint: String, machine: String) {
        self.peers.know(worker, endpoint);
        self.machines.insert(worker, machine);
    }

    pub fn forget(&mut self, worker: WorkerId) {
        self.peers.forget(worker);
        self.machines.remove(&worker);
        self.sent.remove(&worker);
    }

    /// Whether a worker can map this one's memory.
    pub fn shares_memory(&self, worker: WorkerId) -> bool {
        !self.machine.is_empty() && self.machines.get(&worker) == Some(&self.machine)
    }

    /// Sends a piece. If it cannot be sent, gives what the dispatcher is to be told.
    pub fn send(&mut self, to: WorkerId, piece: Piece) -> Option<Message> {
        let transfer = piece.transfer;
        match self.peers.send(to, &codec::encode(&Message::Piece(piece))) {
            Ok(()) => {
                let sent = self.sent.entry(to).or_default();
                if sent.len() == REMEMBERED {
                    sent.drain(..REMEMBERED / 2);
                }
                sent.push(transfer);
                None
            }
            Err(error) => Some(Message::Undelivered { transfer, to, reason: error.to_string() }),
        }
    }

    /// What did not arrive because a link failed.
    pub fn undelivered(&mut self) -> Vec<Message> {
        let mut undelivered = Vec::new();
        for to in self.peers.failed() {
            let reason = "the connection could not be made, or was lost".to_string();
            for transfer in self.sent.remove(&to).unwrap_or_default() {
                undelivered.push(Message::Undelivered { transfer, to, reason: reason.clone() });
            }
        }
        undelivered
    }

    /// The next message that another worker has sent.
    pub fn try_receive(&mut self) -> Result<Option<Message>, NetError> {
        loop {
            match self.peers.try_receive()? {
                None => return Ok(None),
                Some(PeerEvent::Disconnected(link)) => {
                    self.links.remove(&link);
                }
                Some(PeerEvent::Message { link, frames }) => {
                    // What is not a piece, or from somebody else than before, is not taken.
                    match codec::decode(&frames) {
                        Ok(Message::Piece(piece)) if self.is_from(&link, piece.from) => {
                            return Ok(Some(Message::Piece(self.map(piece))));
                        }
                        Ok(Message::Release { token }) => {
                            return Ok(Some(Message::Release { token }));
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    fn is_from(&mut self, link: &LinkId, worker: WorkerId) -> bool {
        worker != self.own && *self.links.entry(link.clone()).or_insert(worker) == worker
    }

    /// A piece with its data at hand; its sender may let go of a block.
    fn map(&mut self, piece: Piece) -> Piece {
        let Piece { transfer, from, result } = piece;
        let result = result.and_then(|content: Content| match blocks::receive(content) {
            Ok((content, token)) => {
                if let Some(token) = token {
                    // If it does not get there, the block goes with its owner.
                    let release = codec::encode(&Message::Release { token });
                    let _ = self.peers.send(from, &release);
                }
                Ok(content)
            }
            Err(reason) => Err(Failure {
                operation: "receive".into(),
                reason,
                worker: String::new(),
                line: SourceId::default(),
            }),
        });
        Piece { transfer, from, result }
    }
}
