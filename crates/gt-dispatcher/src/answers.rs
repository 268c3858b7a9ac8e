//! Client requests in flight to workers, and the routing of their answers.

use std::collections::BTreeSet;
use std::time::Duration;

use gt_ir::message::{Answer, Failure, Reply};
use gt_ir::statistics::WorkerStats;
use gt_ir::stored::Written;
use gt_ir::{LaneId, RequestId, SourceId, TensorId};
use rustc_hash::FxHashMap;

use crate::lineage::Digest;
use crate::peer::{PeerId, PeerOutbox};
use crate::recent::TensorSource;

/// A fetch in flight to a worker, keyed by the request id that the dispatcher assigned.
pub(crate) struct PendingFetch {
    /// The client, and its own id for the request.
    pub client: PeerId,
    pub original: RequestId,
    /// The worker that is asked; `None` if there is none any more.
    pub worker: Option<PeerId>,
    pub lane: LaneId,
    /// The tensor fetched, and what computes it, if that is known.
    pub tensor: TensorId,
    pub source: Option<TensorSource>,
    /// The user's line that reads the value.
    pub line: SourceId,
    /// When the request was planned.
    pub since: Duration,
    /// The digest of the value that the client already received. Set when a batch is replayed: the
    /// new value is compared with it, and not forwarded.
    pub known: Option<Digest>,
}

/// A statistics request to all workers, some of which have not answered yet.
struct PendingSurvey {
    client: PeerId,
    original: RequestId,
    /// The workers that have not answered.
    open: BTreeSet<PeerId>,
    workers: Vec<WorkerStats>,
}

/// A request to write tensors into files, by several slots.
struct PendingSave {
    client: PeerId,
    original: RequestId,
    /// The workers that have not answered, one for each slot that writes; `None` for those that are
    /// lost.
    open: Vec<Option<PeerId>>,
    written: Result<Vec<Written>, Failure>,
}

/// All requests in flight, and the shared-memory blocks that carry data between peers.
#[derive(Default)]
pub(crate) struct PendingAnswers {
    requests: FxHashMap<RequestId, PendingFetch>,
    surveys: FxHashMap<RequestId, PendingSurvey>,
    saves: FxHashMap<RequestId, PendingSave>,
    /// Shared blocks that are not mapped yet, by token: the owner and the receiver.
    blocks: FxHashMap<u128, (PeerId, PeerId)>,
    next: u64,
}

impl PendingAnswers {
    /// Returns the number of requests and shared blocks in flight.
    pub fn len(&self) -> usize {
        self.requests.len() + self.surveys.len() + self.saves.len() + self.blocks.len()
    }

    fn number(&mut self) -> RequestId {
        self.next += 1;
        RequestId(self.next)
    }

    /// Registers a fetch and returns its id.
    pub fn open(&mut self, request: PendingFetch) -> RequestId {
        let number = self.number();
        self.requests.insert(number, request);
        number
    }

    /// Removes and returns the fetch that a worker answers; `None` unless it was sent to that
    /// worker.
    pub fn close(&mut self, number: RequestId, worker: PeerId) -> Option<PendingFetch> {
        self.requests.get(&number).filter(|open| open.worker == Some(worker))?;
        self.requests.remove(&number)
    }

    /// Cancels a client's request. Returns it if it was sent to a worker.
    pub fn cancel(
        &mut self,
        client: PeerId,
        original: RequestId,
    ) -> Option<(RequestId, PendingFetch)> {
        let is_it = |request: &PendingFetch| {
            (request.client, request.original) == (client, original) && request.known.is_none()
        };
        let number = self.requests.iter().find(|(_, request)| is_it(request)).map(|(id, _)| *id)?;
        self.requests.remove(&number).map(|request| (number, request))
    }

    /// Returns a client's oldest fetch, the first by id among equals.
    pub fn oldest(&self, client: PeerId) -> Option<&PendingFetch> {
        let is_asked =
            |request: &&PendingFetch| request.client == client && request.known.is_none();
        let asked = self.requests.values().filter(is_asked);
        asked.min_by_key(|request| (request.since, request.original))
    }

    /// Returns whether a client waits for any answer.
    pub fn has_pending(&self, client: PeerId) -> bool {
        self.requests.values().any(|it| it.client == client && it.known.is_none())
            || self.saves.values().any(|it| it.client == client)
            || self.surveys.values().any(|it| it.client == client)
    }

    /// Opens a statistics request to the workers in `open` and returns its id. Without workers,
    /// answers the client at once and returns `None`.
    pub fn open_survey(
        &mut self,
        outbox: &mut PeerOutbox,
        client: PeerId,
        original: RequestId,
        open: BTreeSet<PeerId>,
    ) -> Option<RequestId> {
        if open.is_empty() {
            let answer = Answer::new(original, Reply::Statistics(Vec::new()));
            outbox.push(client, answer);
            return None;
        }
        let number = self.number();
        self.surveys.insert(number, PendingSurvey { client, original, open, workers: Vec::new() });
        Some(number)
    }

    /// Adds one worker's statistics (`None` if it was lost), and answers the client after the last.
    pub fn survey(
        &mut self,
        outbox: &mut PeerOutbox,
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
            let answer = Answer::new(survey.original, Reply::Statistics(survey.workers));
            outbox.push(survey.client, answer);
        }
    }

    /// Opens a request to write files, to the workers in `open`, and returns its id. Without
    /// workers, answers the client at once.
    pub fn open_save(
        &mut self,
        outbox: &mut PeerOutbox,
        client: PeerId,
        original: RequestId,
        open: Vec<Option<PeerId>>,
    ) -> RequestId {
        let number = self.number();
        if open.is_empty() {
            outbox.push(client, Answer { request: original, result: Ok(Reply::Saved(Vec::new())) });
        } else {
            let saving = PendingSave { client, original, open, written: Ok(Vec::new()) };
            self.saves.insert(number, saving);
        }
        number
    }

    /// Returns the client whose tensors are written for a request.
    pub fn saver(&self, number: RequestId) -> Option<PeerId> {
        self.saves.get(&number).map(|saving| saving.client)
    }

    /// Adds what a worker has written, and answers the client after the last. The first failure is
    /// the answer, sent once all workers have reported.
    pub fn saved(
        &mut self,
        outbox: &mut PeerOutbox,
        number: RequestId,
        worker: PeerId,
        result: Result<Vec<Written>, Failure>,
    ) {
        let Some(saving) = self.saves.get_mut(&number) else { return };
        let Some(at) = saving.open.iter().position(|open| *open == Some(worker)) else { return };
        saving.open.swap_remove(at);
        match (&mut saving.written, result) {
            (Ok(all), Ok(more)) => all.extend(more),
            (Ok(_), Err(failure)) => saving.written = Err(failure),
            (Err(_), _) => {}
        }
        if saving.open.is_empty()
            && let Some(PendingSave { client, original, written, .. }) = self.saves.remove(&number)
        {
            let result = written.map(|mut all| {
                all.sort_by_key(|written| (written.index, written.block.starts));
                all
            });
            outbox.push(client, Answer { request: original, result: result.map(Reply::Saved) });
        }
    }

    /// Fails the saves that wait for a lost worker.
    pub fn fail_saves(&mut self, outbox: &mut PeerOutbox, worker: PeerId, failure: &Failure) {
        let mut open: Vec<RequestId> = self.saves.keys().copied().collect();
        open.sort_unstable();
        for number in open {
            let of = |saving: &PendingSave| {
                saving.open.iter().filter(|open| **open == Some(worker)).count()
            };
            for _ in 0..self.saves.get(&number).map_or(0, of) {
                self.saved(outbox, number, worker, Err(failure.clone()));
            }
        }
    }

    /// Registers a block of shared memory in transit from its owner to its receiver.
    pub fn share(&mut self, token: u128, owner: PeerId, receiver: PeerId) {
        self.blocks.insert(token, (owner, receiver));
    }

    /// Removes a block that its receiver has mapped, and returns its owner, who may unlink it.
    pub fn mapped(&mut self, token: u128) -> Option<PeerId> {
        self.blocks.remove(&token).map(|(owner, _)| owner)
    }

    /// Returns whether a client waits for this worker's answer.
    pub fn awaits_worker(&self, client: PeerId, worker: PeerId) -> bool {
        let is_it =
            |request: &PendingFetch| request.client == client && request.worker == Some(worker);
        self.requests.values().any(is_it)
            || self.saves.values().any(|it| it.client == client && it.open.contains(&Some(worker)))
            || self.surveys.values().any(|it| it.client == client && it.open.contains(&worker))
    }

    /// Drops the requests of a client that disconnected.
    pub fn forget_client(&mut self, client: PeerId) {
        self.requests.retain(|_, request| request.client != client);
        self.surveys.retain(|_, survey| survey.client != client);
        self.saves.retain(|_, saving| saving.client != client);
    }

    /// Removes and returns the fetches that a lost worker will not answer. Surveys continue without
    /// it.
    pub fn forget_worker(&mut self, outbox: &mut PeerOutbox, worker: PeerId) -> Vec<PendingFetch> {
        let mut open: Vec<RequestId> = self
            .requests
            .iter()
            .filter(|(_, request)| request.worker == Some(worker))
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

    /// Removes the blocks of a lost peer. Returns those that it had not mapped, with their owners.
    pub fn unmapped(&mut self, peer: PeerId) -> Vec<(u128, PeerId)> {
        let mut open: Vec<(u128, PeerId)> = self
            .blocks
            .iter()
            .filter(|(_, (_, receiver))| *receiver == peer)
            .map(|(token, (owner, _))| (*token, *owner))
            .collect();
        open.sort_unstable();
        self.blocks.retain(|_, (owner, receiver)| *owner != peer && *receiver != peer);
        open
    }
}
