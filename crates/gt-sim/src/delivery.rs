//! Delivers messages to dispatcher, workers and clients, and puts their output on links.

use std::time::Instant;

use gt_dispatcher::PeerId;
use gt_ir::message::{Failure, Message, Role};
use gt_ir::snapshot::{Backup, Owner, Unkept};
use gt_ir::stored::{OnDisk, SavePart, SavedBlock, Written};
use gt_ir::{Content, Piece, SourceId, WorkerId, codec};
use gt_worker::{FileJob, Out};

use crate::faults::NoticeDelay;
use crate::links::DISPATCHER;
use crate::world::World;

impl World {
    pub(crate) fn deliver(&mut self, from: PeerId, to: PeerId, message: Message) {
        if to == DISPATCHER {
            let role = if self.came.contains(&from) { Role::Worker } else { Role::Client };
            let arrived = self.kept.as_mut().map(|kept| kept.arrive(from, &message));
            let start = Instant::now();
            match (arrived, message) {
                (Some(arrived), Message::Stream(commands)) => {
                    let frames = codec::encode(&Message::Stream(commands.clone()));
                    self.dispatcher.handle_stream(self.now, from, commands, frames, arrived);
                }
                (_, message) => self.dispatcher.handle(self.now, from, role, message),
            }
            self.dispatcher.tick(self.now);
            self.dispatching += start.elapsed();
            self.send_outbox();
        } else if self.is_early(from, to) {
            self.links.send(self.now, from, to, message);
        } else if let Some(worker) = self.workers.get_mut(&to) {
            let mut out = Vec::new();
            match message {
                Message::Welcome(welcome) => return self.welcome_worker(to, &welcome),
                Message::Observe { on, sent } => worker.observe(on, sent),
                Message::Goodbye { .. } => return self.crash(to, NoticeDelay::Soon),
                message => worker.handle(message, &mut out),
            }
            self.send_out(to, out);
            self.links.turn(self.now, to);
            self.let_meet(false);
        } else if let Message::Confirm { snapshot } = message {
            if self.mailboxes.contains_key(&to) {
                self.send(to, DISPATCHER, Message::Confirmed { snapshot });
            }
        } else if let Some(mailbox) = self.mailboxes.get_mut(&to) {
            if self.kept.as_mut().is_some_and(|kept| !kept.is_awaited(to, &message)) {
                return;
            }
            match &message {
                Message::Done(weight) => {
                    if let Some(credit) = self.credit.get_mut(&to) {
                        *credit -= weight;
                    }
                }
                Message::Goodbye { .. } => drop(self.credit.remove(&to)),
                Message::Notice { text }
                    if text.contains("are lost") || text.contains("could not be") =>
                {
                    self.unkept.insert(to);
                }
                _ => {}
            }
            mailbox.push(message);
        }
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
                self.send(worker, DISPATCHER, Message::Saved { request, result });
            }
            FileJob::Read { lane, tensor, .. } => {
                let failure = Failure::new("load", "there are no files", "", SourceId::default());
                let loaded = Message::Loaded { lane, tensor, result: Err(failure) };
                self.send(worker, worker, loaded);
            }
            FileJob::Spill { lane, tensor, number, data } => {
                let result = match self.is_disk_full {
                    true => Err(Failure::new("spill", "the disk is full", "", SourceId::default())),
                    false => Ok(OnDisk { checksum: 7, mapped: Some(Content::Data(data.clone())) }),
                };
                if result.is_ok() {
                    self.files.insert((worker, number), data);
                }
                self.send(worker, worker, Message::Spilled { lane, tensor, number, result });
            }
            FileJob::Shelve { owner, tensor, data } => {
                let full = Failure::new("spill", "the disk is full", "", SourceId::default());
                let result = if self.is_disk_full { Err(full) } else { Ok(Content::Data(data)) };
                self.send(worker, worker, Message::Shelved { owner, tensor, result });
            }
            FileJob::Restore { lane, tensor, number, checksum, .. } => {
                let data = self.files.get(&(worker, number)).filter(|_| checksum == 7).cloned();
                let lost = Failure::new("restore", "there is no file", "", SourceId::default());
                let result = data.map(Content::Data).ok_or(lost);
                self.send(worker, worker, Message::Loaded { lane, tensor, result });
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
                Out::Dispatcher(message) => self.send(worker, DISPATCHER, message),
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
        let undelivered = Message::Undelivered { transfer, to: lane, reason };
        if !self.may_send(from, to, undelivered) {
            return;
        }
        self.pieces_bytes += piece_bytes(&piece);
        // The sender's id is not checked here, as it is by the network driver.
        let sender = WorkerId(0);
        self.send(from, to, Message::Piece { sender, piece });
    }

    /// Sends values of a snapshot from worker to worker.
    fn send_backup(&mut self, from: PeerId, to: PeerId, backup: Backup) {
        let (Owner { session, slot }, snapshot) = (backup.owner, backup.snapshot);
        let result = Err(Unkept::Unreachable("the link is broken".into()));
        let undelivered = Message::Backed { session, slot, snapshot, result };
        if from == to || self.may_send(from, to, undelivered) {
            self.send(from, to, Message::Backup(Box::new(backup)));
        }
    }

    /// Returns whether a link between workers is open. If it is not, or fails later, the dispatcher
    /// is notified of what was not delivered.
    fn may_send(&mut self, from: PeerId, to: PeerId, undelivered: Message) -> bool {
        if self.failed.contains(&(from, to)) {
            self.send(from, DISPATCHER, undelivered);
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
            if let Message::Welcome(welcome) = &message
                && self.workers.contains_key(&peer)
            {
                self.worker_peers.insert(WorkerId(welcome.session), peer);
            }
            self.send(DISPATCHER, peer, message);
        }
    }
}

fn piece_bytes(piece: &Piece) -> u64 {
    piece.result.as_ref().map_or(0, |content| content.meta().bytes() as u64)
}
