//! Delivers messages to dispatcher, workers and clients, and puts their output on links.

use std::time::{Duration, Instant};

use gt_dispatcher::{FromPeer, PeerId, ToPeer};
use gt_ir::message::{
    ClientToServer, Failure, Goodbye, Role, ServerToClient, ServerToWorker, Welcome,
    WorkerToServer, WorkerToWorker,
};
use gt_ir::snapshot::{Backup, Owner, Unkept};
use gt_ir::stored::{OnDisk, SavePart, SavedBlock, Written};
use gt_ir::{ClientCommand, Content, Piece, SourceId, WorkerId, codec};
use gt_worker::{FileJob, FileResult, Out, WorkerInput};

use crate::faults::{NoticeDelay, START_AGAIN};
use crate::links::{End, Flight, Load, Mail};
use crate::world::World;

impl World {
    /// Puts a message on a client's link.
    pub fn send_from_client(&mut self, client: PeerId, message: impl Into<FromPeer>) {
        if !self.mailboxes.contains_key(&client) {
            // It was killed.
            return;
        }
        let message = message.into();
        if let FromPeer::Client(ClientToServer::Stream(commands)) = &message {
            let weight: u64 = commands.iter().map(ClientCommand::weight).sum();
            if let Some(credit) = self.credit.get_mut(&client) {
                *credit += weight;
            }
        }
        self.send_to_server(client, message);
    }

    /// Like [`World::send_from_client`], at a time to come.
    pub fn send_at(&mut self, at: Duration, client: PeerId, message: impl Into<FromPeer>) {
        let now = std::mem::replace(&mut self.now, at);
        self.send_from_client(client, message);
        self.now = now;
    }

    pub(crate) fn send_to_server(&mut self, from: PeerId, message: impl Into<FromPeer>) {
        let message = message.into();
        if self.mailboxes.contains_key(&from) {
            if let FromPeer::Client(ClientToServer::Stream(commands)) = &message {
                self.from_clients.count(commands);
            }
            if let Some(kept) = &mut self.kept {
                kept.send(from, &message);
            }
        }
        self.links.send(self.now, from, End::Server, Mail::Server(message));
    }

    pub(crate) fn send_to_peer(&mut self, to: PeerId, message: ToPeer) {
        if let ToPeer::Worker(ServerToWorker::Work { commands, .. }) = &message
            && self.workers.contains_key(&to)
        {
            self.to_workers.count(commands);
        }
        self.links.send(self.now, End::Server, to, Mail::Peer(message));
    }

    pub(crate) fn send_to_worker(
        &mut self,
        from: PeerId,
        to: PeerId,
        input: impl Into<WorkerInput>,
    ) {
        self.links.send(self.now, from, to, Mail::Worker(input.into()));
    }

    pub(crate) fn deliver(&mut self, from: End, to: End, message: Mail) {
        match (from, to, message) {
            (End::Peer(from), _, Mail::Server(message)) => self.deliver_to_server(from, message),
            (_, End::Peer(to), Mail::Peer(message)) => match to.role {
                Role::Worker => self.deliver_to_worker(to, message),
                _ => self.deliver_to_client(to, message),
            },
            (_, End::Peer(to), Mail::Worker(input)) if self.is_early(to) => {
                self.links.send(self.now, from, to, Mail::Worker(input));
            }
            (_, End::Peer(to), Mail::Worker(input)) => self.pass(to, input),
            _ => unreachable!("each message is on a link of its direction"),
        }
    }

    fn deliver_to_server(&mut self, from: PeerId, message: FromPeer) {
        let arrived = self.kept.as_mut().map(|kept| kept.arrive(from, &message));
        let start = Instant::now();
        match (arrived, message) {
            (Some(arrived), FromPeer::Client(ClientToServer::Stream(commands))) => {
                let frames = codec::encode(&ClientToServer::Stream(commands.clone()));
                self.dispatcher.handle_stream(self.now, from, commands, frames, arrived);
            }
            (_, message) => self.dispatcher.handle(self.now, from, message),
        }
        self.dispatcher.tick(self.now);
        self.dispatching += start.elapsed();
        self.send_outbox();
    }

    fn deliver_to_worker(&mut self, to: PeerId, message: ToPeer) {
        match message {
            ToPeer::Welcome(Welcome::Worker(welcome)) => self.welcome_worker(to, &welcome),
            ToPeer::Goodbye(Goodbye { reason }) => self.end_worker(to, &reason),
            ToPeer::Worker(ServerToWorker::Observe { level, sent }) => {
                if let Some(worker) = self.workers.get_mut(&to) {
                    worker.observe(level, sent);
                }
            }
            ToPeer::Worker(message) => self.pass(to, message.into()),
            message => unreachable!("{message:?} is not for a worker"),
        }
    }

    /// Ends a worker to which the dispatcher says goodbye; a drained one with a folder starts again.
    fn end_worker(&mut self, worker: PeerId, reason: &str) {
        self.crash(worker, NoticeDelay::Soon);
        if reason == "drained" {
            self.drained += 1;
            if self.has_states {
                let load = Load::Start(worker, self.names[&worker].clone());
                let (from, to) = (worker.into(), End::Server);
                self.links.put(self.now + START_AGAIN, Flight { from, to, load });
            }
        }
    }

    /// Passes something to a worker's core.
    fn pass(&mut self, to: PeerId, input: WorkerInput) {
        self.set_clock(to);
        let Some(worker) = self.workers.get_mut(&to) else { return };
        let mut out = Vec::new();
        worker.handle(input, &mut out);
        self.send_out(to, out);
        self.schedule_turn(self.now, to);
        self.let_meet(false);
    }

    fn deliver_to_client(&mut self, to: PeerId, message: ToPeer) {
        if !self.mailboxes.contains_key(&to) {
            return;
        }
        if let ToPeer::Client(ServerToClient::Confirm { snapshot }) = message {
            return self.send_to_server(to, ClientToServer::Confirmed { snapshot });
        }
        if self.kept.as_mut().is_some_and(|kept| !kept.is_awaited(to, &message)) {
            return;
        }
        match &message {
            ToPeer::Client(ServerToClient::Credit(weight)) => {
                if let Some(credit) = self.credit.get_mut(&to) {
                    *credit -= weight;
                }
            }
            ToPeer::Goodbye(_) => drop(self.credit.remove(&to)),
            ToPeer::Client(ServerToClient::Notice { text })
                if text.contains("are lost") || text.contains("could not be") =>
            {
                self.unkept.insert(to);
            }
            _ => {}
        }
        self.mailboxes.entry(to).or_default().push(message);
    }

    /// Simulates file operations: pretends to write checkpoints, and stores spilled tensors.
    fn file(&mut self, worker: PeerId, job: FileJob) {
        match job {
            FileJob::Write { part, .. } => {
                let SavePart { request, file, blocks, .. } = *part;
                let written = |saved: SavedBlock| {
                    let (index, block, file) = (saved.index, saved.block, file.clone());
                    Written { index, file, offset: 0, block, bytes: 0, checksum: 0 }
                };
                let result = Ok(blocks.into_iter().map(written).collect());
                self.send_to_server(worker, WorkerToServer::Saved { request, result });
            }
            FileJob::Read { lane, tensor, .. } => {
                let failure = Failure::new("load", "there are no files", "", SourceId::default());
                let loaded = FileResult::Loaded { lane, tensor, result: Err(failure) };
                self.send_to_worker(worker, worker, loaded);
            }
            FileJob::Spill { lane, tensor, number, data } => {
                let result = match self.is_disk_full {
                    true => Err(Failure::new("spill", "the disk is full", "", SourceId::default())),
                    false => Ok(OnDisk { checksum: 7, mapped: Some(Content::Data(data.clone())) }),
                };
                if result.is_ok() {
                    self.files.insert((worker, number), data);
                }
                let spilled = FileResult::Spilled { lane, tensor, number, result };
                self.send_to_worker(worker, worker, spilled);
            }
            FileJob::SpillSnapshot { owner, tensor, data } => {
                let full = Failure::new("spill", "the disk is full", "", SourceId::default());
                let result = if self.is_disk_full { Err(full) } else { Ok(Content::Data(data)) };
                let spilled = FileResult::SnapshotSpilled { owner, tensor, result };
                self.send_to_worker(worker, worker, spilled);
            }
            FileJob::Restore { lane, tensor, number, checksum, .. } => {
                let data = self.files.get(&(worker, number)).filter(|_| checksum == 7).cloned();
                let lost = Failure::new("restore", "there is no file", "", SourceId::default());
                let result = data.map(Content::Data).ok_or(lost);
                let loaded = FileResult::Loaded { lane, tensor, result };
                self.send_to_worker(worker, worker, loaded);
            }
            FileJob::Discard { number } => drop(self.files.remove(&(worker, number))),
        }
    }

    pub(crate) fn send_out(&mut self, worker: PeerId, out: Vec<Out>) {
        let out = self.write_state(worker, out);
        self.send_now(worker, out);
    }

    pub(crate) fn send_now(&mut self, worker: PeerId, out: Vec<Out>) {
        for out in out {
            match out {
                Out::Server(message) => self.send_to_server(worker, message),
                Out::Worker(to, piece) => {
                    if let Some(&to) = self.worker_peers.get(&to) {
                        self.send_piece(worker, to, piece);
                    }
                }
                Out::Backup(to, backup) => {
                    if let Some(&to) = self.worker_peers.get(&to) {
                        self.send_backup(worker, to, *backup);
                    }
                }
                Out::Files(job) => self.file(worker, job),
            }
        }
    }

    /// Sends a piece from worker to worker, or reports that the link has failed.
    fn send_piece(&mut self, from: PeerId, to: PeerId, piece: Piece) {
        let reason = "the other worker cannot be reached".into();
        let (transfer, lane) = (piece.transfer, piece.to);
        let undelivered = WorkerToServer::Undelivered { transfer, to: lane, reason };
        if !self.may_send(from, to, undelivered) {
            return;
        }
        self.pieces_bytes += piece_bytes(&piece);
        if from != to {
            self.pieces_pairs.insert((from.min(to), from.max(to)));
        }
        // The sender's id is not checked here, as it is by the network driver.
        let sender = WorkerId(0);
        self.send_to_worker(from, to, WorkerToWorker::Piece { sender, piece });
    }

    /// Sends values of a snapshot from worker to worker.
    fn send_backup(&mut self, from: PeerId, to: PeerId, backup: Backup) {
        let (Owner { session, slot }, snapshot) = (backup.owner, backup.snapshot);
        let result = Err(Unkept::Unreachable("the link is broken".into()));
        let undelivered = WorkerToServer::BackupStored { session, slot, snapshot, result };
        if from == to || self.may_send(from, to, undelivered) {
            self.send_to_worker(from, to, WorkerToWorker::Backup(Box::new(backup)));
        }
    }

    /// Returns whether a link between workers is open. If it is not, or fails later, the dispatcher
    /// is notified of what was not delivered.
    fn may_send(&mut self, from: PeerId, to: PeerId, undelivered: WorkerToServer) -> bool {
        if self.failed.contains(&(from, to)) {
            self.send_to_server(from, undelivered);
            return false;
        }
        self.sent.entry((from, to)).or_default().push(undelivered);
        true
    }

    pub(crate) fn send_outbox(&mut self) {
        let mut out = Vec::new();
        self.write_journal();
        self.dispatcher.take_outbox(&mut out);
        for (peer, message) in out {
            if let ToPeer::Welcome(Welcome::Worker(welcome)) = &message
                && self.workers.contains_key(&peer)
            {
                self.worker_peers.insert(welcome.worker, peer);
            }
            self.send_to_peer(peer, message);
        }
    }
}

fn piece_bytes(piece: &Piece) -> u64 {
    piece.result.as_ref().map_or(0, |content| content.meta().bytes() as u64)
}
