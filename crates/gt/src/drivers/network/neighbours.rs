//! A worker's links to the other workers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use gt_ir::message::{Failure, LinkRate, WorkerToServer, WorkerToWorker};
use gt_ir::snapshot::{Backup, Owner, Unkept};
use gt_ir::{Content, LaneId, Piece, SourceId, TransferId, WorkerId};
use gt_net::dealer::Wakeup;
use gt_net::peers::{ConnectionCounters, FailedLink, PeerEvent, PeerLinks};
use gt_net::server::LinkId;
use gt_net::{NetError, codec, shm};
use rustc_hash::{FxHashMap, FxHashSet};

use super::blocks;

/// The links to other workers, and their state.
pub struct Neighbours {
    own: WorkerId,
    peers: PeerLinks,
    machine: String,
    machines: BTreeMap<WorkerId, String>,
    /// Includes lost workers, as their pieces may still arrive.
    names: BTreeMap<WorkerId, String>,
    /// The worker at the other end of each link on which messages have arrived.
    links: FxHashMap<LinkId, WorkerId>,
    /// Links of workers that were lost: what is still in them is read, and nothing is sent on them.
    stale: FxHashSet<LinkId>,
    /// What was sent recently, to be reported if the link fails.
    sent: BTreeMap<WorkerId, VecDeque<SentPiece>>,
    /// The pieces that wait for a link to open: if it does not, they are sent through the server.
    waiting: BTreeMap<WorkerId, Vec<Piece>>,
    /// The workers to which no link could be opened.
    unreachable: BTreeSet<WorkerId>,
    /// Those of which the log does not say so yet, and since when: they may just have died.
    untold: BTreeMap<WorkerId, Instant>,
    /// This process's blocks that others have yet to map.
    lent: BTreeMap<WorkerId, FxHashSet<u128>>,
    /// What each link had carried when it was last looked at, and the rate that was reported; and
    /// when that was.
    rates: BTreeMap<WorkerId, (ConnectionCounters, u64)>,
    measured: Instant,
    /// Blocks that this process has mapped, whose owners have yet to be notified.
    mapped: Vec<(WorkerId, u128)>,
}

/// The number of sent items remembered for each neighbour: more than can be in flight.
const REMEMBERED: usize = 64 << 10;

/// How long a worker is unreachable before the log says so: the server notices a death earlier.
const TELL_AFTER: Duration = Duration::from_secs(2);

/// The interval at which the rates of links are looked at.
const MEASURE_EVERY: Duration = Duration::from_secs(1);

/// An item that was sent to a neighbour.
#[derive(Clone, Copy)]
enum SentPiece {
    Piece(TransferId, LaneId),
    /// Values of a slot's snapshot.
    Backup(Owner, u64),
}

impl SentPiece {
    fn of(piece: &Piece) -> SentPiece {
        SentPiece::Piece(piece.transfer, piece.to)
    }

    /// Returns the message for the dispatcher if the item does not arrive.
    fn undelivered(self, reason: String) -> WorkerToServer {
        match self {
            SentPiece::Piece(transfer, to) => WorkerToServer::Undelivered { transfer, to, reason },
            SentPiece::Backup(Owner { session, slot }, snapshot) => {
                let result = Err(Unkept::Unreachable(reason));
                WorkerToServer::BackupStored { session, slot, snapshot, result }
            }
        }
    }
}

impl Neighbours {
    pub fn new(own: WorkerId, peers: PeerLinks) -> Neighbours {
        Neighbours {
            own,
            peers,
            machine: shm::machine_token(),
            machines: BTreeMap::new(),
            names: BTreeMap::new(),
            links: FxHashMap::default(),
            stale: FxHashSet::default(),
            sent: BTreeMap::new(),
            waiting: BTreeMap::new(),
            unreachable: BTreeSet::new(),
            untold: BTreeMap::new(),
            lent: BTreeMap::new(),
            rates: BTreeMap::new(),
            measured: Instant::now(),
            mapped: Vec::new(),
        }
    }

    /// This worker's id.
    pub fn own(&self) -> WorkerId {
        self.own
    }

    /// The wakeup of a thread that waits for messages.
    pub fn wakeup(&self) -> Wakeup<'_> {
        self.peers.wakeup()
    }

    pub fn know(&mut self, worker: WorkerId, name: String, endpoint: String, machine: String) {
        self.peers.know(worker, endpoint);
        self.names.insert(worker, name);
        self.machines.insert(worker, machine);
        self.notify_mapped();
    }

    /// Removes a lost worker, and returns the blocks that it has not mapped.
    pub fn forget(&mut self, worker: WorkerId) -> FxHashSet<u128> {
        self.peers.forget(worker);
        let its = self.links.iter().filter(|(_, other)| **other == worker);
        self.stale.extend(its.map(|(link, _)| link.clone()));
        self.machines.remove(&worker);
        self.rates.remove(&worker);
        self.sent.remove(&worker);
        self.waiting.remove(&worker);
        self.unreachable.remove(&worker);
        self.untold.remove(&worker);
        self.mapped.retain(|(owner, _)| *owner != worker);
        self.lent.remove(&worker).unwrap_or_default()
    }

    /// Removes all workers, and returns the blocks that they have not mapped.
    pub fn forget_all(&mut self) -> Vec<u128> {
        let known: Vec<WorkerId> = self.names.keys().copied().collect();
        known.into_iter().flat_map(|worker| self.forget(worker)).collect()
    }

    /// Sets this worker's id.
    pub fn rename(&mut self, own: WorkerId) {
        self.own = own;
    }

    /// Whether a worker can map this one's memory.
    pub fn shares_memory(&self, worker: WorkerId) -> bool {
        !self.machine.is_empty() && self.machines.get(&worker) == Some(&self.machine)
    }

    /// Sends a piece. Returns the message for the dispatcher if that fails.
    ///
    /// The pieces of a transfer arrive in order: those for a worker that could not be reached once take
    /// the way through the server from then on, behind the first ones.
    pub fn send(&mut self, to: WorkerId, piece: Piece) -> Option<WorkerToServer> {
        let is_shared = matches!(&piece.result, Ok(Content::Shared { .. }));
        // Only workers on this machine could map a block.
        if self.unreachable.contains(&to) && !is_shared {
            return Some(WorkerToServer::Relay { to, piece });
        }
        if let Ok(Content::Shared { block, .. }) = &piece.result {
            self.lent.entry(to).or_default().insert(block.token);
        }
        let sent = SentPiece::of(&piece);
        let message = WorkerToWorker::Piece { sender: self.own, piece };
        let result = self.peers.send(to, &codec::encode(&message));
        let WorkerToWorker::Piece { piece, .. } = message else { return None };
        match result {
            Ok(()) if is_shared || self.peers.is_open(to) => self.note_sent(to, sent),
            // It is not open yet, or will be found to have failed.
            Ok(()) => self.waiting.entry(to).or_default().push(piece),
            Err(_) if self.peers.is_unreachable(to) && !is_shared => {
                self.waiting.entry(to).or_default().push(piece);
            }
            Err(error) => return Some(sent.undelivered(error.to_string())),
        }
        None
    }

    fn note_sent(&mut self, to: WorkerId, sent: SentPiece) {
        let all = self.sent.entry(to).or_default();
        if all.len() == REMEMBERED {
            all.pop_front();
        }
        all.push_back(sent);
    }

    /// Sends values of a snapshot. Returns the message for the dispatcher if that fails.
    pub fn send_backup(&mut self, to: WorkerId, mut backup: Box<Backup>) -> Option<WorkerToServer> {
        let sent = SentPiece::Backup(backup.owner, backup.snapshot);
        backup.sender = Some(self.own);
        for value in &backup.values {
            if let Ok(Content::Shared { block, .. }) = &value.result {
                self.lent.entry(to).or_default().insert(block.token);
            }
        }
        match self.peers.send(to, &codec::encode(&WorkerToWorker::Backup(backup))) {
            Ok(()) => {
                self.note_sent(to, sent);
                None
            }
            Err(error) => Some(sent.undelivered(error.to_string())),
        }
    }

    /// Whether links have failed that [`Neighbours::undelivered`] has not reported.
    pub fn has_failed(&self) -> bool {
        self.peers.has_failed()
    }

    /// The messages for the dispatcher about what was sent on failed links.
    pub fn undelivered(&mut self) -> Vec<WorkerToServer> {
        self.peers.refusals().into_iter().for_each(|text| tracing::warn!("{text}"));
        let mut undelivered = Vec::new();
        for FailedLink { worker: to, was_open } in self.peers.failed() {
            let waiting = self.waiting.remove(&to).unwrap_or_default();
            let mut lost: Vec<SentPiece> = self.sent.remove(&to).unwrap_or_default().into();
            if was_open {
                lost.extend(waiting.iter().map(SentPiece::of));
            } else {
                if self.unreachable.insert(to) {
                    self.untold.insert(to, Instant::now());
                }
                let relay = |piece| WorkerToServer::Relay { to, piece };
                undelivered.extend(waiting.into_iter().map(relay));
            }
            let reason = "the connection could not be made, or was lost";
            undelivered.extend(lost.into_iter().map(|sent| sent.undelivered(reason.to_string())));
        }
        self.note_opened();
        undelivered
    }

    /// Pieces whose links have opened are on their way.
    fn note_opened(&mut self) {
        let waiting = self.waiting.keys().copied();
        let opened: Vec<WorkerId> = waiting.filter(|to| self.peers.is_open(*to)).collect();
        for to in opened {
            for piece in self.waiting.remove(&to).unwrap_or_default() {
                self.note_sent(to, SentPiece::of(&piece));
            }
        }
    }

    /// Writes to the log who cannot be reached, once for each.
    fn tell_unreachable(&mut self) {
        let Neighbours { untold, names, peers, .. } = self;
        untold.retain(|worker, since| {
            if since.elapsed() < TELL_AFTER {
                return true;
            }
            let name = names.get(worker).map_or("", String::as_str);
            let address = peers.endpoint_of(*worker).unwrap_or("an unknown address");
            tracing::warn!(
                "worker '{name}' cannot be reached at {address}: what it needs is sent through the server, which is slower\n  hint: workers must reach each other on all ports; --peer-host sets the address of a worker"
            );
            false
        });
    }

    /// Returns the message for the dispatcher about links to other machines whose rates have changed
    /// since the last one, if there are any.
    pub fn measured(&mut self) -> Option<WorkerToServer> {
        if self.measured.elapsed() < MEASURE_EVERY {
            return None;
        }
        self.measured = Instant::now();
        self.tell_unreachable();
        let carried: Vec<_> = self.peers.carried().collect();
        let mut links = Vec::new();
        for (to, counters) in carried {
            if self.shares_memory(to) {
                continue;
            }
            let (before, known) = self.rates.entry(to).or_insert((counters, 0));
            let rate = counters.rate_since(std::mem::replace(before, counters));
            let Some(rate) = rate.filter(|rate| rate.abs_diff(*known) > *known / 4) else {
                continue;
            };
            *known = rate;
            links.push(LinkRate { to, bytes_per_second: rate });
        }
        (!links.is_empty()).then_some(WorkerToServer::Links(links))
    }

    /// The next message from another worker.
    pub fn try_receive(&mut self) -> Result<Option<WorkerToWorker>, NetError> {
        loop {
            match self.peers.try_receive()? {
                None => return Ok(None),
                Some(PeerEvent::Disconnected(link)) => {
                    self.links.remove(&link);
                    self.stale.remove(&link);
                }
                Some(PeerEvent::Message { link, frames }) => {
                    // What does not decode is dropped, and so is what names another sender than
                    // the link has.
                    let Ok(message) = codec::decode(&frames) else { continue };
                    if let Some(message) = self.accept(&link, message) {
                        return Ok(Some(message));
                    }
                }
            }
        }
    }

    /// Maps the data of a message, if the message is from the worker at the other end of its link.
    fn accept(&mut self, link: &LinkId, message: WorkerToWorker) -> Option<WorkerToWorker> {
        Some(match message {
            WorkerToWorker::Piece { sender, piece } => {
                self.is_from(link, sender).then_some(())?;
                let piece = self.map(sender, piece);
                WorkerToWorker::Piece { sender, piece }
            }
            WorkerToWorker::Backup(mut backup) => {
                let sender = backup.sender.filter(|sender| self.is_from(link, *sender))?;
                self.map_backup(sender, &mut backup);
                WorkerToWorker::Backup(backup)
            }
            WorkerToWorker::Release { token } => {
                self.lent.values_mut().for_each(|lent| {
                    lent.remove(&token);
                });
                WorkerToWorker::Release { token }
            }
        })
    }

    /// Notifies owners that their blocks are mapped. Unknown owners are retried later.
    fn notify_mapped(&mut self) {
        let peers = &mut self.peers;
        self.mapped.retain(|(owner, token)| {
            let release = codec::encode(&WorkerToWorker::Release { token: *token });
            peers.send(*owner, &release).is_err()
        });
    }

    fn is_from(&mut self, link: &LinkId, worker: WorkerId) -> bool {
        let is_from =
            worker != self.own && *self.links.entry(link.clone()).or_insert(worker) == worker;
        if is_from && !self.stale.contains(link) {
            self.peers.note_sender(worker, link);
        }
        is_from
    }

    /// Maps the data of a snapshot's values. Values that cannot be mapped are left out.
    fn map_backup(&mut self, sender: WorkerId, backup: &mut Backup) {
        let mut tokens = Vec::new();
        backup.values.retain_mut(|value| {
            let Ok(content) = &mut value.result else { return true };
            let Ok((mapped, token)) = blocks::receive(content.clone()) else { return false };
            *content = mapped;
            tokens.extend(token);
            true
        });
        self.mapped.extend(tokens.into_iter().map(|token| (sender, token)));
        self.notify_mapped();
    }

    /// Maps a piece's data, and has its sender release the block.
    fn map(&mut self, sender: WorkerId, piece: Piece) -> Piece {
        let Piece { transfer, number, from, to, result } = piece;
        let result = result.and_then(|content: Content| match blocks::receive(content) {
            Ok((content, token)) => {
                self.mapped.extend(token.map(|token| (sender, token)));
                self.notify_mapped();
                Ok(content)
            }
            Err(reason) => {
                let name = self.names.get(&sender).cloned().unwrap_or_else(|| sender.to_string());
                Err(Failure::new("receive", format!(
                        "the worker '{name}', which held a part of the tensor, was lost, or its memory cannot be read ({reason})"
                    ), name, SourceId::default()))
            }
        });
        Piece { transfer, number, from, to, result }
    }
}

#[cfg(test)]
mod tests;
