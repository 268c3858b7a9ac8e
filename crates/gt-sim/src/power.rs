//! Power cuts: the dispatcher and all workers die at once, and start again from what was durable.
//!
//! The semantics are those of `gt::drivers::network::worker::state`: what tells others that a snapshot is
//! complete waits until all that was written before it is durable.

use std::collections::VecDeque;
use std::mem::take;

use gt_dispatcher::PeerId;
use gt_ir::wire;
use gt_worker::{Out, SnapshotRecord, Work};

use crate::links::{DISPATCHER, Load};
use crate::world::World;

/// A worker's folder.
#[derive(Default)]
pub(crate) struct StateFolder {
    records: Vec<SnapshotRecord>,
    /// How many of them are durable.
    durable: usize,
    /// What waits for the disk, by the number of records that are to be durable.
    later: VecDeque<(usize, Out)>,
}

impl StateFolder {
    /// What is found in a folder by the next process that uses it: what was durable.
    fn found(self) -> StateFolder {
        let StateFolder { mut records, durable, .. } = self;
        records.truncate(durable);
        StateFolder { records, durable, later: VecDeque::new() }
    }

    /// A worker goes on with what is in its folder.
    fn adopt(&mut self, core: &mut dyn Work) {
        let written = take(&mut self.records).into_iter().take(self.durable);
        let read = written.map(|record| wire::decode(&wire::encode(&record)));
        core.adopt(read.map(|record| record.expect("it was just written")).collect());
        self.begin(core);
    }

    /// A worker writes its folder anew.
    fn begin(&mut self, core: &mut dyn Work) {
        self.records = core.keep_records();
        self.durable = self.records.len();
    }

    /// Nothing waits for the disk any more.
    pub fn forget(&mut self) {
        self.later.clear();
    }
}

impl World {
    /// Lets workers that start from now on write their snapshots to a disk.
    pub fn keep_states(&mut self) {
        self.has_states = true;
    }

    /// Starts a worker again, with the folder that it had.
    pub(crate) fn start_again(&mut self, before: PeerId, name: String) {
        let folder = self.states.remove(&before).map(StateFolder::found);
        let owner = self.owners.get(&before).copied().unwrap_or(before);
        let peer = self.new_peer();
        if let Some(folder) = folder {
            self.owners.insert(peer, owner);
            self.states.insert(peer, folder);
            self.unread.insert(peer);
        }
        self.begin_worker(peer, name);
    }

    /// A worker that was started again is told whether what is in its folder is wanted.
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

    /// Writes what has changed at a worker. Returns what it may send by now.
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

    /// Makes durable what workers have written. Returns whether something waited for that.
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

    /// Kills everything but the clients, and starts it again.
    pub(crate) fn cut_power(&mut self) {
        if self.kept.is_none() {
            return;
        }
        let there: Vec<PeerId> = self.workers.keys().copied().collect();
        let is_worker = |peer: PeerId| there.contains(&peer);
        self.links.retain(|flight| match flight.load {
            Load::Message(_) | Load::Turn => !is_worker(flight.from) && !is_worker(flight.to),
            Load::NoticeDelay | Load::Start(_) => true,
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
            match self.links.is_broken(peer, DISPATCHER) {
                true => drop(self.workers.remove(&peer)),
                false => drop(self.workers.insert(peer, core)),
            }
        }
        self.restart();
    }
}
