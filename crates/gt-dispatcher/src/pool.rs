//! The workers, and which session computes on which.

use std::collections::VecDeque;

use crate::dispatcher::PeerId;

pub(crate) struct WorkerState {
    pub peer: PeerId,
    pub name: String,
    pub machine: String,
    /// The weight of all commands it has not reported done.
    pub in_flight: u64,
    /// Whose these are, oldest first.
    pub owners: VecDeque<(PeerId, u64)>,
    /// Sessions that compute on it.
    pub sessions: u32,
}

/// All workers, in the order they came.
#[derive(Default)]
pub(crate) struct Pool {
    workers: Vec<WorkerState>,
}

impl Pool {
    pub fn add(&mut self, peer: PeerId, name: String, machine: String) {
        self.workers.push(WorkerState {
            peer,
            name,
            machine,
            in_flight: 0,
            owners: VecDeque::new(),
            sessions: 0,
        });
    }

    pub fn remove(&mut self, peer: PeerId) -> Option<WorkerState> {
        let index = self.workers.iter().position(|worker| worker.peer == peer)?;
        Some(self.workers.remove(index))
    }

    pub fn get(&self, peer: PeerId) -> Option<&WorkerState> {
        self.workers.iter().find(|worker| worker.peer == peer)
    }

    pub fn get_mut(&mut self, peer: PeerId) -> Option<&mut WorkerState> {
        self.workers.iter_mut().find(|worker| worker.peer == peer)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut WorkerState> {
        self.workers.iter_mut()
    }

    pub fn len(&self) -> usize {
        self.workers.len()
    }

    /// Gives a session to the worker with the fewest, the first of equals.
    pub fn assign(&mut self) -> Option<PeerId> {
        let worker = self.workers.iter_mut().min_by_key(|worker| worker.sessions)?;
        worker.sessions += 1;
        Some(worker.peer)
    }

    pub fn release(&mut self, peer: PeerId) {
        if let Some(worker) = self.get_mut(peer) {
            worker.sessions = worker.sessions.saturating_sub(1);
        }
    }

    /// Takes finished weight off a worker; says whose it was.
    pub fn done(&mut self, peer: PeerId, mut weight: u64) -> Vec<(PeerId, u64)> {
        let mut credits = Vec::new();
        let Some(worker) = self.get_mut(peer) else { return credits };
        worker.in_flight = worker.in_flight.saturating_sub(weight);
        while weight > 0 {
            let Some((client, open)) = worker.owners.front_mut() else { break };
            let part = weight.min(*open);
            credits.push((*client, part));
            *open -= part;
            weight -= part;
            if *open == 0 {
                worker.owners.pop_front();
            }
        }
        credits
    }
}
