//! The dispatcher's state machine.
//!
//! - [`attachment`]: sessions that outlive their clients.
//! - [`routing`]: routes each peer's messages to the parts of the dispatcher.
//! - [`batches`]: a session's batches, from receipt to the workers.
//! - [`cluster_events`]: records losses, recoveries and moves, for watchers.
//! - [`membership`]: peers that connect and disconnect; [`neighbours`]: links between workers; [`quotas`]: the policy's limits on users.
//! - [`lines`]: asks clients for the lines of their programs, for watchers; [`inspecting`]: the
//!   details of one session.
//! - [`slots`]: which workers host the slots of sessions; [`drains`]: moves them off a worker that is to end.
//! - [`memory`]: lanes that wait for memory. [`publishing`]: what sessions publish. [`operators`]: what operators ask; [`pauses`] and [`weights`]:
//!   of sessions and users.
//! - [`snapshots`]: takes snapshots of sessions; [`recovery`]: restores sessions from them when a
//!   worker is lost; [`replay`]: replays the batches since; [`restart`]: resumes the sessions of a
//!   server that was restarted.
//! - [`trials`]: finds the session, and the command, that kills workers.

mod attachment;
mod batches;
mod cluster_events;
mod drains;
mod inspecting;
mod lines;
mod membership;
mod memory;
mod neighbours;
mod operators;
mod pauses;
mod published_values;
mod publishing;
mod quotas;
mod recovery;
mod replay;
mod restart;
mod revoked;
mod routing;
mod slots;
mod snapshots;
mod trials;
mod weights;

pub use restart::REJOIN_WITHIN;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gt_ir::message::{Answer, Failure, ServerToWorker, WorkerHello};
use gt_ir::status::Status;
use gt_ir::{Content, Incarnation, LaneId, RequestId, SlotId, TensorId};

use crate::answers::PendingAnswers;
use crate::collectives::PendingCollectives;
use crate::journal::JournalBuffer;
use crate::library::Publications;
use crate::lineage::LineageLimits;
use crate::numbers::LastNumbers;
use crate::observability::log::Log;
use crate::observability::{Clock, Cluster, Observability};
use crate::peer::{PeerId, PeerOutbox, ToPeer};
use crate::peers::Peers;
use crate::pipeline::Pipeline;
use crate::planner::{Planner, Streams};
use crate::rules::Rules;
use crate::scheduler::Scheduler;
use crate::sessions::ClientSession;
use crate::waiting;
use attachment::WaitingClient;
use operators::ConnectedOperator;
use trials::Trials;

/// Bounds on queues and waits.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The weight of commands that a client may have in flight.
    pub client_window: u64,
    /// The weight that a session may have in flight to each of its lanes.
    pub lane_window: u64,
    /// The bytes of large values that a client may have requested and not received.
    pub unread: u64,
    /// The most tensors that a session may have at a time.
    pub tensors: usize,
    /// How long a session waits for a worker before its requests fail.
    pub worker_wait: Duration,
    /// Limits of the lineage from which sessions are restored when a worker is lost. `None` keeps
    /// no lineage.
    pub lineage: Option<LineageLimits>,
}

impl Default for Limits {
    fn default() -> Limits {
        let worker_wait = Duration::from_secs(30);
        let (client_window, lane_window) = (16 << 10, 2 << 10);
        let (unread, tensors) = (u64::MAX, usize::MAX);
        Limits { client_window, lane_window, unread, tensors, worker_wait, lineage: None }
    }
}

/// How many windows a client may send without credit before it is disconnected.
const OVERDRAFT: u64 = 16;

/// The state machine: consumes messages from peers and produces messages to them.
pub struct Dispatcher {
    limits: Limits,
    rules: Rules,
    /// Whether the rules limit the wall or idle time of any session.
    has_time_limits: bool,
    machine: String,
    /// The folders in which workers may read and write files; sent to clients in the handshake.
    data_roots: Vec<String>,
    peers: Peers,
    scheduler: Scheduler,
    pipeline: Pipeline,
    planner: Planner,
    streams: Streams,
    answers: PendingAnswers,
    collectives: PendingCollectives,
    trials: Trials,
    observability: Observability,
    journal: JournalBuffer,
    library: Publications,
    /// The clients that wait for a session that another one holds.
    waiting: Vec<WaitingClient>,
    operators: BTreeMap<PeerId, ConnectedOperator>,
    /// The users that operators have paused.
    paused: BTreeSet<String>,
    /// The last numbers that a predecessor, whose journal was read, may have assigned.
    predecessor: Option<LastNumbers>,
    outbox: PeerOutbox,
}

impl Dispatcher {
    /// Creates a dispatcher on `machine` (see [`gt_ir::message::ClientHello::machine`]).
    pub fn new(machine: String, limits: Limits, log: Option<Log>) -> Dispatcher {
        Dispatcher {
            limits,
            rules: Rules::default(),
            has_time_limits: false,
            machine,
            data_roots: Vec::new(),
            peers: Peers::default(),
            scheduler: Scheduler::default(),
            pipeline: Pipeline::default(),
            planner: Planner::default(),
            streams: Streams::default(),
            answers: PendingAnswers::default(),
            collectives: PendingCollectives::default(),
            trials: Trials::default(),
            observability: Observability::new(log),
            journal: JournalBuffer::default(),
            library: Publications::default(),
            waiting: Vec::new(),
            operators: BTreeMap::new(),
            paused: BTreeSet::new(),
            predecessor: None,
            outbox: PeerOutbox::default(),
        }
    }

    /// Returns the stream modifiers.
    pub fn pipeline(&mut self) -> &mut Pipeline {
        &mut self.pipeline
    }

    /// Sets the folders in which workers may read and write files, which clients receive.
    pub fn set_data_roots(&mut self, roots: Vec<String>) {
        self.data_roots = roots;
    }

    /// Sets the number of workers that are starting: sessions that begin earlier wait for them, for
    /// 2 s at most.
    pub fn announce(&mut self, workers: usize) {
        self.peers.workers.announce(workers);
    }

    /// Returns the planner, for configuration.
    pub fn planner(&mut self) -> &mut Planner {
        &mut self.planner
    }

    /// Sets the clock from which events take their times while a message is being handled.
    pub fn set_clock(&mut self, clock: Clock) {
        self.observability.clock = Some(clock);
    }

    /// Sets when the dispatcher's time began, in seconds since 1970, by which the last hour continues
    /// after a restart.
    pub fn set_start(&mut self, started: u64) {
        self.observability.hour.set_start(started);
    }

    /// Returns the number of clients and of workers.
    pub fn population(&self) -> (usize, usize) {
        (self.peers.sessions.len(), self.peers.workers.len())
    }

    /// Returns whether the worker of a hello has another connection, whose loss has not been
    /// noticed yet.
    pub fn is_connected(&self, hello: &WorkerHello) -> bool {
        self.peers.workers.earlier(hello).is_some()
    }

    /// Describes state that has outlived its session, for tests; `None` if there is none.
    pub fn leftovers(&self) -> Option<String> {
        let (sessions, questions) = (self.peers.sessions.len(), self.answers.len());
        let (collectives, shares) = (self.collectives.len(), self.peers.shares.len());
        (sessions + questions + collectives + shares > 0).then(|| {
            format!(
                "{sessions} sessions, {questions} questions, {collectives} collectives, {shares} shares"
            )
        })
    }

    /// Appends the messages to be sent to `into`, in order.
    pub fn take_outbox(&mut self, into: &mut Vec<(PeerId, ToPeer)>) {
        if self.limits.lineage.is_some() {
            self.log_answers();
        }
        into.append(&mut self.outbox.0);
    }

    /// Advances the time: fails requests that have waited too long for a worker, and ends sessions
    /// whose time is over.
    pub fn tick(&mut self, now: Duration) {
        self.end_unrestored(now);
        let is_empty = self.peers.workers.len() == 0;
        for peer in self.peers.sessions.peers() {
            let Some(session) = self.peers.sessions.get(peer) else { continue };
            let limit = self.worker_wait(session);
            let Some(session) = self.peers.sessions.get_mut(peer) else { continue };
            if session.workerless_since(is_empty).is_some_and(|since| now >= since + limit) {
                let returned = waiting::fail_all(now, session, &mut self.outbox, limit);
                session.queue.workerless_since = session.has_queued().then_some(now);
                session.return_credit(&mut self.outbox, returned);
            }
        }
        if self.limits.lineage.is_some() {
            self.take_snapshots(now);
        }
        self.continue_drains(now);
        self.resume_ready(now);
        self.begin_trials(now);
        self.end_overdue(now);
        self.end_withdrawn(now);
        self.end_unmet(now);
        self.retry_copies(now);
        self.bequeath(now);
        self.admit_waiting(now);
        self.resolve_memory_waits(now);
        self.record_minutes(now);
        self.forget_inspected(now);
        self.observability.tick(now, &mut self.outbox);
        debug_assert!(self.peers.is_activity_counted(), "a session's activity is not counted");
    }

    /// Returns when [`Dispatcher::tick`] is due next, if any session waits for a worker or for
    /// memory, or has a time limit.
    pub fn next_deadline(&self) -> Option<Duration> {
        let is_empty = self.peers.workers.len() == 0;
        let late = |it: &ClientSession| Some(it.workerless_since(is_empty)? + self.worker_wait(it));
        let waiting = self.peers.sessions.iter().filter_map(late).min();
        let with_workers = self.peers.sessions.iter().filter(|session| session.has_worker());
        let lineages = with_workers.filter_map(|session| session.lineage.as_ref());
        // While a session is on trial, no snapshots are taken.
        let lineages = lineages.filter(|_| !self.trials.is_running());
        let snapshot = lineages.filter_map(|lineage| lineage.deadline()).min();
        let awaited = self.peers.sessions.iter().filter_map(|session| session.phase.awaited());
        let wait = self.limits.worker_wait;
        let awaited = awaited.filter_map(|awaited| awaited.deadline(wait)).min();
        let awaited = awaited.filter(|_| self.peers.workers.len() > 0);
        let own = waiting.into_iter().chain(snapshot).chain(awaited);
        let own = own.chain(self.next_end()).chain(self.next_shortage());
        own.chain(self.next_trial())
            .chain(self.next_waiting())
            .chain(self.next_publication_end())
            .chain(self.next_drain())
            .min()
    }

    /// Returns where a client's tensor is, or will be, computed unsharded: the worker, the lane,
    /// and the tensor's name there. `None` if the session has a lineage, which must see every read,
    /// or if the tensor failed.
    pub fn replica_of(
        &self,
        client: PeerId,
        tensor: TensorId,
    ) -> Option<(PeerId, LaneId, TensorId)> {
        let session = self.peers.sessions.get(client)?;
        if session.lineage.is_some() {
            return None;
        }
        let (slot, name) = session.planning.catalogue.replica(tensor)?;
        let host = session.planning.catalogue.slots.host(slot)?;
        let worker = self.peers.workers.by_id(host)?.peer;
        Some((worker, LaneId { incarnation: session.identity.incarnation, slot }, name))
    }

    /// Returns whether a lane is on the worker of a link: messages about it from other workers are
    /// ignored.
    fn is_on(&self, lane: LaneId, peer: PeerId) -> bool {
        let Some(session) = self.peers.sessions.by_incarnation(lane.incarnation) else {
            return false;
        };
        let host = session.planning.catalogue.slots.host(lane.slot);
        host.is_some() && host == self.peers.workers.get(peer).map(|worker| worker.id)
    }

    /// Returns the client of a lane's session, if the lane is on the worker of a link.
    fn client_of(&self, lane: LaneId, peer: PeerId) -> Option<PeerId> {
        let session = self
            .peers
            .sessions
            .by_incarnation(lane.incarnation)
            .filter(|_| self.is_on(lane, peer))?;
        Some(session.identity.peer)
    }

    /// Sends messages to the workers of a session's slots.
    fn send_to_lanes(&mut self, incarnation: Incarnation, messages: Vec<(SlotId, ServerToWorker)>) {
        let Some(session) = self.peers.sessions.by_incarnation(incarnation) else { return };
        for (slot, message) in messages {
            let host = session.planning.catalogue.slots.host(slot);
            if let Some(worker) = host.and_then(|worker| self.peers.workers.by_id(worker)) {
                self.outbox.push(worker.peer, message);
            }
        }
    }

    /// Forwards a worker's answer to the client that asked.
    fn answer(
        &mut self,
        now: Duration,
        peer: PeerId,
        request: RequestId,
        mut result: Result<Content, Failure>,
    ) {
        for other in result.as_mut().err().into_iter().flat_map(|failure| &mut failure.others) {
            // Workers identify sessions by their incarnations.
            let session = self
                .peers
                .sessions
                .iter()
                .find(|session| session.identity.incarnation == other.incarnation);
            other.label = session.map(|session| session.identity.label.clone()).unwrap_or_default();
        }
        let Some(request) = self.answers.close(request, peer) else {
            // The request was cancelled, or its client has disconnected: release the shared memory.
            if let Ok(Content::Shared { block, .. }) = &result {
                self.outbox.release(peer, block.token);
            }
            return;
        };
        let waited = now.saturating_sub(request.since);
        self.observability.cluster_events.counters.value_waits.add(waited);
        if self.observability.takes_events() {
            self.observability.emit_answer(now, peer, &request, &result, &self.peers);
        }
        if let Ok(Content::Shared { block, .. }) = &result {
            self.answers.share(block.token, peer, request.client);
        }
        if let Some(known) = request.known {
            return self.compare(request.client, known, &result);
        }
        // The client confirms values only: a failure counts as read at once.
        if let Err(failure) = &result
            && let Some(session) = self.peers.sessions.get_mut(request.client)
        {
            session.unread.remove(request.original);
            session.note_error(now, failure);
        }
        self.outbox.push(request.client, Answer::value(request.original, result));
    }

    /// Returns the status, as `peer` is to see it.
    fn status(&mut self, now: Duration, peer: PeerId) -> Status {
        self.peers.shares.collect(now);
        let Dispatcher { peers, answers, observability, rules, library, .. } = self;
        let Peers { sessions, workers, shares } = peers;
        Cluster { now, sessions, workers, shares, answers, observability, rules, library }
            .status(peer)
    }
}
