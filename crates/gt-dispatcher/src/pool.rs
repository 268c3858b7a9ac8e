//! The workers, and which session begins on which.

use std::collections::VecDeque;
use std::time::Duration;

use gt_ir::message::Hello;
use gt_ir::{Fabric, WorkerId};
use rustc_hash::FxHashMap;

use crate::dispatcher::PeerId;
use crate::planner::Fabrics;

pub(crate) struct WorkerState {
    pub peer: PeerId,
    pub id: WorkerId,
    /// As configurations name it.
    pub number: u32,
    pub name: String,
    pub machine: String,
    /// Where other workers reach it.
    pub endpoint: String,
    /// Where its engine joins others.
    fabric: Option<Fabric>,
    /// The weight of all commands it has not reported done.
    pub in_flight: u64,
    /// Of which batches these are, oldest first; 0 for the dispatcher's own.
    pub owners: VecDeque<(u64, u64)>,
    /// Since when it has had something to do.
    pub busy_since: Option<Duration>,
    /// How long it had something to do before that.
    pub busy: Duration,
    /// Sessions that begin on it.
    pub sessions: u32,
}

impl WorkerState {
    /// A part of a batch, or a command of the dispatcher's own (0), is on its way to it.
    pub fn owe(&mut self, now: Duration, batch: u64, weight: u64) {
        self.in_flight += weight;
        self.owners.push_back((batch, weight));
        self.busy_since.get_or_insert(now);
    }
}

/// All workers, in the order they came.
#[derive(Default)]
pub(crate) struct Pool {
    workers: Vec<WorkerState>,
    ids: FxHashMap<PeerId, WorkerId>,
    next: u32,
}

impl Pool {
    /// Takes a worker in, by another name if its own is taken. Its number is its name, if that is
    /// a number nobody has; or else the first that is free.
    pub fn add(&mut self, peer: PeerId, hello: Hello) -> &WorkerState {
        let Hello { mut name, machine, endpoint, fabric, .. } = hello;
        let taken = |name: &str| self.workers.iter().any(|worker| worker.name == name);
        if taken(&name) {
            // Errors and statistics are to tell them apart.
            let others = (2..).map(|count| format!("{name}.{count}"));
            name = others.into_iter().find(|other| !taken(other)).expect("one is free");
        }
        let id = WorkerId(self.next);
        self.next += 1;
        let free = |number: &u32| self.workers.iter().all(|worker| worker.number != *number);
        let named = name.parse::<u32>().ok().filter(free);
        let number = named.or_else(|| (0..).find(free)).expect("there are fewer than 2^32 workers");
        self.ids.insert(peer, id);
        self.workers.push(WorkerState {
            peer,
            id,
            number,
            name,
            machine,
            endpoint,
            fabric,
            in_flight: 0,
            owners: VecDeque::new(),
            busy_since: None,
            busy: Duration::ZERO,
            sessions: 0,
        });
        &self.workers[self.workers.len() - 1]
    }

    pub fn remove(&mut self, peer: PeerId) -> Option<WorkerState> {
        let id = self.ids.remove(&peer)?;
        let index = self.index(id)?;
        Some(self.workers.remove(index))
    }

    pub fn get(&self, peer: PeerId) -> Option<&WorkerState> {
        Some(&self.workers[self.index(*self.ids.get(&peer)?)?])
    }

    pub fn get_mut(&mut self, peer: PeerId) -> Option<&mut WorkerState> {
        self.get_by_id(*self.ids.get(&peer)?)
    }

    pub fn get_by_id(&mut self, id: WorkerId) -> Option<&mut WorkerState> {
        let index = self.index(id)?;
        Some(&mut self.workers[index])
    }

    /// They came in the order of their ids.
    fn index(&self, id: WorkerId) -> Option<usize> {
        self.workers.binary_search_by_key(&id, |worker| worker.id).ok()
    }

    pub fn iter(&self) -> impl Iterator<Item = &WorkerState> {
        self.workers.iter()
    }

    pub fn len(&self) -> usize {
        self.workers.len()
    }

    /// All workers by the numbers that configurations use.
    pub fn numbers(&self) -> Vec<(u32, WorkerId)> {
        let mut numbers: Vec<_> =
            self.workers.iter().map(|worker| (worker.number, worker.id)).collect();
        numbers.sort_unstable();
        numbers
    }

    /// The workers whose engines join others.
    pub fn fabrics(&self) -> Fabrics {
        let mut fabrics = Fabrics::default();
        for worker in &self.workers {
            if let Some(fabric) = &worker.fabric {
                fabrics.add(worker.id, &worker.name, &worker.machine, fabric);
            }
        }
        fabrics
    }

    /// Gives a session to the worker with the fewest, the first of equals.
    pub fn assign(&mut self) -> Option<(PeerId, WorkerId)> {
        let worker = self.workers.iter_mut().min_by_key(|worker| worker.sessions)?;
        worker.sessions += 1;
        Some((worker.peer, worker.id))
    }

    pub fn release(&mut self, peer: PeerId) {
        if let Some(worker) = self.get_mut(peer) {
            worker.sessions = worker.sessions.saturating_sub(1);
        }
    }

    /// Takes finished weight off a worker; gives the batches it is done with.
    pub fn done(&mut self, now: Duration, peer: PeerId, mut weight: u64) -> Vec<u64> {
        let mut finished = Vec::new();
        let Some(worker) = self.get_mut(peer) else { return finished };
        worker.in_flight = worker.in_flight.saturating_sub(weight);
        if worker.in_flight == 0
            && let Some(since) = worker.busy_since.take()
        {
            worker.busy += now.saturating_sub(since);
        }
        while weight > 0 {
            let Some((batch, open)) = worker.owners.front_mut() else { break };
            let part = weight.min(*open);
            *open -= part;
            weight -= part;
            if *open == 0 {
                finished.push(*batch);
                worker.owners.pop_front();
            }
        }
        finished
    }
}
