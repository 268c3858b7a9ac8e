//! Power cuts: the dispatcher and all workers die at once, and restart from what was durable.
//!
//! The semantics are those of `gt::drivers::network::worker::state`: a message that reports a
//! complete snapshot waits until all records before it are durable.

use std::collections::VecDeque;
use std::mem::take;

use gt_dispatcher::PeerId;
use gt_ir::message::Role;
use gt_ir::wire;
use gt_worker::{Out, SnapshotRecord, Work};

use crate::links::{End, Load};
use crate::world::World;

/// A worker's folder.
#[derive(Default)]
pub(crate) struct WorkerFolder {
    records: Vec<SnapshotRecord>,
    /// The number of durable records.
    durable: usize,
    /// Messages that wait for the disk, with the number of records that must be durable.
    later: VecDeque<(usize, Out)>,
}

impl WorkerFolder {
    /// Returns what the next process finds in a folder: the durable records.
    fn found(self) -> WorkerFolder {
        let WorkerFolder { mut records, durable, .. } = self;
        records.truncate(durable);
        WorkerFolder { records, durable, later: VecDeque::new() }
    }

    /// A worker resumes from its folder.
    fn adopt(&mut self, core: &mut dyn Work) {
        let written = take(&mut self.records).into_iter().take(self.durable);
        let read = written.map(|record| wire::decode(&wire::encode(&record)));
        core.adopt(read.map(|record| record.expect("it was just written")).collect());
        self.begin(core);
    }

    /// A worker rewrites its folder.
    fn begin(&mut self, core: &mut dyn Work) {
        self.records = core.keep_records();
        self.durable = self.records.len();
    }

    /// Drops the messages that wait for the disk.
    pub fn forget(&mut self) {
        self.later.clear();
    }
}

impl World {
    /// Has workers that start from now on write their snapshots to disk.
    pub fn keep_states(&mut self) {
        self.has_states = true;
    }

    /// Restarts a worker with its folder.
    pub(crate) fn start_again(&mut self, before: PeerId, name: String) {
        let folder = self.states.remove(&before).map(WorkerFolder::found);
        let owner = self.owners.get(&before).copied().unwrap_or(before);
        let peer = self.new_peer(Role::Worker);
        if let Some(folder) = folder {
            self.owners.insert(peer, owner);
            self.states.insert(peer, folder);
            self.unread.insert(peer);
        }
        self.begin_worker(peer, name);
    }

    /// Reports to a restarted worker whether the dispatcher needs the contents of its folder.
    pub(crate) fn read_state(&mut self, peer: PeerId, is_renewed: bool) {
        if !self.unread.remove(&peer) {
            return;
        }
        if let (Some(folder), Some(core)) =
            (self.states.get_mut(&peer), self.workers.get_mut(&peer))
        {
            match is_renewed {
                true => folder.adopt(&mut **core),
                false => folder.begin(&mut **core),
            }
        }
    }

    /// Writes a worker's changes. Returns the messages that it may send now.
    pub(crate) fn write_state(&mut self, peer: PeerId, out: Vec<Out>) -> Vec<Out> {
        let (Some(folder), Some(worker)) =
            (self.states.get_mut(&peer), self.workers.get_mut(&peer))
        else {
            return out;
        };
        folder.records.extend(worker.take_records());
        let mut ready = Vec::new();
        for out in out {
            match out.is_of_snapshot() {
                true => folder.later.push_back((folder.records.len(), out)),
                false => ready.push(out),
            }
        }
        if self.links.chance.below(3) == 0 {
            folder.durable = folder.records.len();
        }
        while folder.later.front().is_some_and(|(count, _)| *count <= folder.durable) {
            ready.extend(folder.later.pop_front().map(|(_, out)| out));
        }
        ready
    }

    /// Makes workers' records durable. Returns whether a message waited for that.
    pub(crate) fn flush_states(&mut self) -> bool {
        let mut ready = Vec::new();
        for (peer, folder) in &mut self.states {
            folder.durable = folder.records.len();
            let later = take(&mut folder.later);
            ready.push((*peer, later.into_iter().map(|(_, out)| out).collect::<Vec<_>>()));
        }
        let has_waited = ready.iter().any(|(_, out)| !out.is_empty());
        ready.into_iter().for_each(|(peer, out)| self.send_now(peer, out));
        has_waited
    }

    /// Kills and restarts everything except the clients.
    pub(crate) fn cut_power(&mut self) {
        if self.kept.is_none() {
            return;
        }
        let there: Vec<PeerId> = self.workers.keys().copied().collect();
        let is_worker = |end: End| there.iter().any(|peer| end == End::Peer(*peer));
        self.links.retain(|flight| match flight.load {
            Load::Message(_) | Load::Turn => !is_worker(flight.from) && !is_worker(flight.to),
            Load::NoticeDelay | Load::Start(..) => true,
        });
        self.waiting.clear();
        self.files.clear();
        for peer in there {
            let name = self.names[&peer].clone();
            let mut core = self.make_worker(name);
            if let Some(folder) = self.states.get_mut(&peer) {
                folder.adopt(&mut *core);
                self.unread.remove(&peer);
            }
            match self.links.is_broken(peer, End::Server) {
                true => drop(self.workers.remove(&peer)),
                false => drop(self.workers.insert(peer, core)),
            }
        }
        self.restart();
    }
}
