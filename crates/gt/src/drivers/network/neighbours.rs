//! The other workers, as one of them knows them.

use std::collections::BTreeMap;

use gt_ir::message::{Failure, Message};
use gt_ir::{Content, LaneId, Piece, SourceId, TransferId, WorkerId};
use gt_net::dealer::Wakeup;
use gt_net::peers::{PeerEvent, PeerLinks};
use gt_net::server::LinkId;
use gt_net::{NetError, codec, shm};
use rustc_hash::{FxHashMap, FxHashSet};

use super::blocks;

/// The links to other workers, and what is known of these.
pub struct Neighbours {
    own: WorkerId,
    peers: PeerLinks,
    machine: String,
    machines: BTreeMap<WorkerId, String>,
    /// Of those that are gone, too: what they sent may come later.
    names: BTreeMap<WorkerId, String>,
    /// Who is at the other end of a link.
    links: FxHashMap<LinkId, WorkerId>,
    /// What was sent on links that may not come about.
    sent: BTreeMap<WorkerId, Vec<(TransferId, LaneId)>>,
    /// Blocks of this process's that others are to map.
    lent: BTreeMap<WorkerId, FxHashSet<u128>>,
    /// Blocks that this process has mapped, whose owners are not told yet.
    mapped: Vec<(WorkerId, u128)>,
}

/// How many of the last transfers are remembered for each neighbour: more than can be under way.
const REMEMBERED: usize = 64 << 10;

impl Neighbours {
    pub fn new(own: WorkerId, peers: PeerLinks) -> Neighbours {
        Neighbours {
            own,
            peers,
            machine: shm::machine_token(),
            machines: BTreeMap::new(),
            names: BTreeMap::new(),
            links: FxHashMap::default(),
            sent: BTreeMap::new(),
            lent: BTreeMap::new(),
            mapped: Vec::new(),
        }
    }

    /// This worker.
    pub fn own(&self) -> WorkerId {
        self.own
    }

    /// What wakes a thread that waits for messages.
    pub fn wakeup(&self) -> Wakeup<'_> {
        self.peers.wakeup()
    }

    pub fn know(&mut self, worker: WorkerId, name: String, endpoint: String, machine: String) {
        self.peers.know(worker, endpoint);
        self.names.insert(worker, name);
        self.machines.insert(worker, machine);
        self.tell_mapped();
    }

    /// Forgets a worker that is gone; gives the blocks that it has not mapped.
    pub fn forget(&mut self, worker: WorkerId) -> FxHashSet<u128> {
        self.peers.forget(worker);
        self.machines.remove(&worker);
        self.sent.remove(&worker);
        self.mapped.retain(|(owner, _)| *owner != worker);
        self.lent.remove(&worker).unwrap_or_default()
    }

    /// Whether a worker can map this one's memory.
    pub fn shares_memory(&self, worker: WorkerId) -> bool {
        !self.machine.is_empty() && self.machines.get(&worker) == Some(&self.machine)
    }

    /// Sends a piece. If it cannot be sent, gives what the dispatcher is to be told.
    pub fn send(&mut self, to: WorkerId, piece: Piece) -> Option<Message> {
        let (transfer, lane, sender) = (piece.transfer, piece.to, self.own);
        if let Ok(Content::Shared { block, .. }) = &piece.result {
            self.lent.entry(to).or_default().insert(block.token);
        }
        match self.peers.send(to, &codec::encode(&Message::Piece { sender, piece })) {
            Ok(()) => {
                let sent = self.sent.entry(to).or_default();
                if sent.len() == REMEMBERED {
                    sent.drain(..REMEMBERED / 2);
                }
                sent.push((transfer, lane));
                None
            }
            Err(error) => {
                Some(Message::Undelivered { transfer, to: lane, reason: error.to_string() })
            }
        }
    }

    /// What did not arrive because a link failed.
    pub fn undelivered(&mut self) -> Vec<Message> {
        let mut undelivered = Vec::new();
        for to in self.peers.failed() {
            let reason = "the connection could not be made, or was lost".to_string();
            for (transfer, to) in self.sent.remove(&to).unwrap_or_default() {
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
                        Ok(Message::Piece { sender, piece }) if self.is_from(&link, sender) => {
                            let piece = self.map(sender, piece);
                            return Ok(Some(Message::Piece { sender, piece }));
                        }
                        Ok(Message::Release { token }) => {
                            self.lent.values_mut().for_each(|lent| {
                                lent.remove(&token);
                            });
                            return Ok(Some(Message::Release { token }));
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    /// Tells owners that their blocks are mapped. One who is not known yet is told later.
    fn tell_mapped(&mut self) {
        let peers = &mut self.peers;
        self.mapped.retain(|(owner, token)| {
            let release = codec::encode(&Message::Release { token: *token });
            peers.send(*owner, &release).is_err()
        });
    }

    fn is_from(&mut self, link: &LinkId, worker: WorkerId) -> bool {
        worker != self.own && *self.links.entry(link.clone()).or_insert(worker) == worker
    }

    /// A piece with its data at hand; its sender may let go of a block.
    fn map(&mut self, sender: WorkerId, piece: Piece) -> Piece {
        let Piece { transfer, from, to, result } = piece;
        let result = result.and_then(|content: Content| match blocks::receive(content) {
            Ok((content, token)) => {
                self.mapped.extend(token.map(|token| (sender, token)));
                self.tell_mapped();
                Ok(content)
            }
            Err(reason) => {
                let name = self.names.get(&sender).cloned().unwrap_or_else(|| sender.to_string());
                Err(Failure {
                    operation: "receive".into(),
                    reason: format!(
                        "the worker '{name}', which held a part of the tensor, was lost, or its memory cannot be read ({reason})"
                    ),
                    worker: name,
                    line: SourceId::default(),
                })
            }
        });
        Piece { transfer, from, to, result }
    }
}
