//! Questions of clients that are under way, and their answers.

use std::collections::BTreeSet;
use std::time::Duration;

use gt_ir::message::{Message, WorkerStats};
use gt_ir::{LaneId, RequestId, TensorId};
use rustc_hash::FxHashMap;

use crate::dispatcher::{Outbox, PeerId};

/// A question under way to a worker, by the number that the dispatcher gave it.
pub(crate) struct Request {
    /// Who asked, and under which number.
    pub client: PeerId,
    pub original: RequestId,
    pub worker: PeerId,
    pub lane: LaneId,
    /// What is asked for, and since when.
    pub tensor: TensorId,
    pub since: Duration,
}

/// Statistics asked of all workers, not all in yet.
struct Survey {
    client: PeerId,
    original: RequestId,
    /// Whose are still to come.
    open: BTreeSet<PeerId>,
    workers: Vec<WorkerStats>,
}

/// Everything that was asked and not answered yet, and the shared memory of answers.
#[derive(Default)]
pub(crate) struct Answers {
    requests: FxHashMap<RequestId, Request>,
    surveys: FxHashMap<RequestId, Survey>,
    /// Shared blocks that are not mapped yet: who owns each, and who is to map it.
    blocks: FxHashMap<u128, (PeerId, PeerId)>,
    next: u64,
}

impl Answers {
    /// How much is under way.
    pub fn len(&self) -> usize {
        self.requests.len() + self.surveys.len() + self.blocks.len()
    }

    fn number(&mut self) -> RequestId {
        self.next += 1;
        RequestId(self.next)
    }

    /// A question for a value is on its way: gives its number.
    pub fn open(&mut self, request: Request) -> RequestId {
        let number = self.number();
        self.requests.insert(number, request);
        number
    }

    /// A worker answers a question: only the one that was asked may.
    pub fn close(&mut self, number: RequestId, worker: PeerId) -> Option<Request> {
        self.requests.get(&number).filter(|open| open.worker == worker)?;
        self.requests.remove(&number)
    }

    /// Nobody waits for the answer to a client's question any more. Gives the question, if a worker
    /// was asked it.
    pub fn cancel(&mut self, client: PeerId, original: RequestId) -> Option<(RequestId, Request)> {
        let is_it = |request: &Request| (request.client, request.original) == (client, original);
        let number = self.requests.iter().find(|(_, request)| is_it(request)).map(|(id, _)| *id)?;
        self.requests.remove(&number).map(|request| (number, request))
    }

    /// The oldest question of a client; of those asked for at once, the first by number.
    pub fn oldest(&self, client: PeerId) -> Option<&Request> {
        let asked = self.requests.values().filter(|request| request.client == client);
        asked.min_by_key(|request| (request.since, request.original))
    }

    /// Begins to ask workers for statistics: gives the question. Without any it is answered at
    /// once.
    pub fn open_survey(
        &mut self,
        outbox: &mut Outbox,
        client: PeerId,
        original: RequestId,
        open: BTreeSet<PeerId>,
    ) -> Option<RequestId> {
        if open.is_empty() {
            let answer = Message::Statistics { request: original, workers: Vec::new() };
            outbox.push(client, answer);
            return None;
        }
        let number = self.number();
        self.surveys.insert(number, Survey { client, original, open, workers: Vec::new() });
        Some(number)
    }

    /// One more worker's statistics, or none of one that is gone; answered when all are in.
    pub fn survey(
        &mut self,
        outbox: &mut Outbox,
        number: RequestId,
        worker: PeerId,
        stats: Option<WorkerStats>,
    ) {
        let Some(survey) = self.surveys.get_mut(&number) else { return };
        if !survey.open.remove(&worker) {
            return;
        }
        survey.workers.extend(stats);
        if survey.open.is_empty()
            && let Some(mut survey) = self.surveys.remove(&number)
        {
            survey.workers.sort_by(|a, b| a.name.cmp(&b.name));
            let answer = Message::Statistics { request: survey.original, workers: survey.workers };
            outbox.push(survey.client, answer);
        }
    }

    /// A block of shared memory is on its way from one peer to another.
    pub fn share(&mut self, token: u128, owner: PeerId, receiver: PeerId) {
        self.blocks.insert(token, (owner, receiver));
    }

    /// A block is mapped: its owner may let go of it.
    pub fn release(&mut self, outbox: &mut Outbox, token: u128) {
        if let Some((owner, _)) = self.blocks.remove(&token) {
            outbox.push(owner, Message::Release { token });
        }
    }

    /// A client is gone, and what it asked.
    pub fn forget_client(&mut self, client: PeerId) {
        self.requests.retain(|_, request| request.client != client);
        self.surveys.retain(|_, survey| survey.client != client);
    }

    /// A worker is gone: gives the questions that it will not answer.
    pub fn forget_worker(&mut self, outbox: &mut Outbox, worker: PeerId) -> Vec<Request> {
        let mut open: Vec<RequestId> = self
            .requests
            .iter()
            .filter(|(_, request)| request.worker == worker)
            .map(|(id, _)| *id)
            .collect();
        open.sort_unstable();
        let mut surveys: Vec<RequestId> = self.surveys.keys().copied().collect();
        surveys.sort_unstable();
        for survey in surveys {
            self.survey(outbox, survey, worker, None);
        }
        open.iter().filter_map(|id| self.requests.remove(id)).collect()
    }

    /// Blocks that a lost peer was to map are let go of by their owners.
    pub fn release_blocks(&mut self, outbox: &mut Outbox, peer: PeerId) {
        let mut open: Vec<(u128, PeerId)> = self
            .blocks
            .iter()
            .filter(|(_, (_, receiver))| *receiver == peer)
            .map(|(token, (owner, _))| (*token, *owner))
            .collect();
        open.sort_unstable();
        for (token, owner) in open {
            outbox.push(owner, Message::Release { token });
        }
        self.blocks.retain(|_, (owner, receiver)| *owner != peer && *receiver != peer);
    }
}
