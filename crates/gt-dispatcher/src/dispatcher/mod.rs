//! The dispatcher's state machine: routes each peer's messages to the parts of the dispatcher.
//!
//! - [`batches`]: a session's batches, from receipt to the workers.
//! - [`membership`]: peers that connect and disconnect; [`quotas`]: what they may have.
//! - [`slots`]: which workers carry the slots of sessions.
//! - [`memory`]: lanes that wait for memory.
//! - [`snapshots`]: what sessions are made again from; [`recovery`]: that they are, when a worker is
//!   lost; [`replay`]: what they plan anew; [`revival`]: sessions of a server that was started again.
//! - [`trials`]: which session killed a worker.

mod batches;
mod membership;
mod memory;
mod quotas;
mod recovery;
mod replay;
mod revival;
mod slots;
mod snapshots;
mod trials;

pub(crate) use memory::Shortage;
pub(crate) use quotas::Warned;
pub(crate) use revival::Awaited;
pub use revival::REJOIN_WITHIN;

use std::time::Duration;

use bytes::Bytes;
use gt_ir::message::{Failure, Message, Role};
use gt_ir::{ClientCommand, Content, LaneId, RequestId, SlotId, TensorId};

use crate::answers::Answers;
use crate::joints::Joints;
use crate::journal::Journal;
use crate::lineage::LineageLimits;
use crate::observability::log::Log;
use crate::observability::{Clock, Cluster, Observability, Peers};
use crate::pipeline::Pipeline;
use crate::planner::{Planner, Streams};
use crate::rules::Rules;
use crate::scheduler::Scheduler;
use crate::sessions::Sessions;
use crate::waiting;
use crate::workers::Workers;
use trials::Trials;

/// Identifies a link; the driver assigns the numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PeerId(pub u64);

impl PeerId {
    /// No link: drivers count from 1.
    pub const NOBODY: PeerId = PeerId(0);
}

/// Bounds on queues and waits.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The weight of commands that a client may have in flight.
    pub client_window: u64,
    /// The weight that a session may have in flight to each of its lanes.
    pub lane_window: u64,
    /// The bytes of large values that a client may have asked for and not received.
    pub unread: u64,
    /// How many tensors a session may have at a time.
    pub tensors: usize,
    /// How long a session waits for a worker before its requests fail.
    pub worker_wait: Duration,
    /// What is kept to make tensors again when a worker is lost; nothing without.
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

/// Messages to be sent, in order.
#[derive(Default)]
pub(crate) struct Outbox(Vec<(PeerId, Message)>);

impl Outbox {
    pub fn push(&mut self, peer: PeerId, message: Message) {
        self.0.push((peer, message));
    }
}

/// The state machine: consumes messages from peers and produces messages to them.
pub struct Dispatcher {
    limits: Limits,
    rules: Rules,
    /// Whether the rules limit anybody's time.
    ends_sessions: bool,
    machine: String,
    /// The folders in which workers may read and write files; clients are told.
    data_roots: Vec<String>,
    sessions: Sessions,
    workers: Workers,
    scheduler: Scheduler,
    pipeline: Pipeline,
    planner: Planner,
    streams: Streams,
    answers: Answers,
    joints: Joints,
    trials: Trials,
    observability: Observability,
    journal: Journal,
    /// Lanes with numbers before this one were those of a dispatcher that is gone.
    oldest: u32,
    /// When workers were last expected back: those of a journal, or one that is lost and has a folder.
    taken_up: Option<Duration>,
    /// How many workers are announced, until that many are there.
    announced: usize,
    outbox: Outbox,
}

/// Borrows sessions and workers, so that another field can be borrowed mutably.
macro_rules! peers {
    ($dispatcher:expr) => {
        Peers { sessions: &$dispatcher.sessions, workers: &$dispatcher.workers }
    };
}
use peers;

impl Dispatcher {
    /// A dispatcher on `machine` (see [`gt_ir::message::Hello::machine`]).
    pub fn new(machine: String, limits: Limits, log: Option<Log>) -> Dispatcher {
        Dispatcher {
            limits,
            rules: Rules::default(),
            ends_sessions: false,
            machine,
            data_roots: Vec::new(),
            sessions: Sessions::default(),
            workers: Workers::default(),
            scheduler: Scheduler::default(),
            pipeline: Pipeline::default(),
            planner: Planner::default(),
            streams: Streams::default(),
            answers: Answers::default(),
            joints: Joints::default(),
            trials: Trials::default(),
            observability: Observability::new(log),
            journal: Journal::default(),
            oldest: 0,
            taken_up: None,
            announced: 0,
            outbox: Outbox::default(),
        }
    }

    /// The stream modifiers.
    pub fn pipeline(&mut self) -> &mut Pipeline {
        &mut self.pipeline
    }

    /// Sets the folders in which workers may read and write files, for clients to know.
    pub fn set_data_roots(&mut self, roots: Vec<String>) {
        self.data_roots = roots;
    }

    /// So many workers are to come: sessions that begin before wait for them, for 2 s at most.
    pub fn announce(&mut self, workers: usize) {
        self.announced = workers;
    }

    /// The planner, for configuration.
    pub fn planner(&mut self) -> &mut Planner {
        &mut self.planner
    }

    /// Sets a clock that events read while a message is being handled.
    pub fn set_clock(&mut self, clock: Clock) {
        self.observability.clock = Some(clock);
    }

    /// The number of clients and of workers.
    pub fn population(&self) -> (usize, usize) {
        (self.sessions.len(), self.workers.len())
    }

    /// Describes state that has outlived its session, for tests; `None` if there is none.
    pub fn leftovers(&self) -> Option<String> {
        let (sessions, questions) = (self.sessions.len(), self.answers.len());
        let joints = self.joints.len();
        (sessions + questions + joints > 0).then(|| {
            format!("{sessions} sessions, {questions} questions, {joints} joint exchanges")
        })
    }

    /// Appends the messages to be sent to `into`, in order.
    pub fn take_outbox(&mut self, into: &mut Vec<(PeerId, Message)>) {
        if self.limits.lineage.is_some() {
            self.note_answers();
        }
        into.append(&mut self.outbox.0);
    }

    /// Handles a client's stream, of which these are the frames; with it, so many of the client's
    /// messages were received.
    pub fn handle_stream(
        &mut self,
        now: Duration,
        peer: PeerId,
        batch: Vec<ClientCommand>,
        frames: Vec<Bytes>,
        received: u64,
    ) {
        if let Some(session) = self.sessions.get_mut(peer) {
            session.received = received;
        }
        self.receive(now, peer, batch, Some(frames));
    }

    /// Handles a message from a peer whose link proves `role`.
    pub fn handle(&mut self, now: Duration, peer: PeerId, role: Role, message: Message) {
        let outbox = &mut self.outbox;
        match (role, message) {
            (_, Message::Hello(hello)) => self.welcome(now, peer, role, hello),
            (Role::Client, Message::Stream(batch)) => self.receive(now, peer, batch, None),
            (Role::Client, Message::Waiting) => self.client_waits(now, peer),
            (Role::Client, Message::Confirmed { snapshot }) => {
                self.confirm(peer, snapshot);
                self.pump(now);
            }
            (Role::Client, Message::Received { request }) => {
                if let Some(session) = self.sessions.get_mut(peer) {
                    session.unread.remove(request);
                }
                self.pump(now);
            }
            (Role::Worker, Message::Backup(backup)) => self.keep_backup(now, peer, *backup),
            (Role::Worker, Message::Backed { session, slot, snapshot, result }) => {
                self.backed(now, peer, (session, slot), snapshot, result);
                self.pump(now);
            }
            (Role::Worker, Message::LaneDone { lane, weight, usage }) => {
                self.lane_done(now, peer, lane, weight, usage);
            }
            (Role::Worker, Message::StepUndone { lane, failure }) => {
                if self.is_on(lane, peer)
                    && let Some(session) = self.sessions.running(lane.session)
                {
                    let client = session.peer;
                    self.outbox.push(client, Message::StepUndone { lane, failure });
                }
            }
            (Role::Worker, Message::LaneBroken { lane, reason }) => {
                if self.is_on(lane, peer)
                    && let Some(session) = self.sessions.running(lane.session)
                {
                    let client = session.peer;
                    self.refuse(now, client, reason);
                }
            }
            (Role::Worker, Message::MemoryWait { lane, wait }) => {
                self.memory_wait(now, peer, lane, wait);
            }
            (Role::Worker, Message::Value { request, result }) => {
                self.answer(now, peer, request, result);
            }
            (Role::Worker, Message::Saved { request, result }) => {
                self.answers.saved(outbox, request, peer, result);
            }
            (Role::Worker, Message::Ready { lane, transfer, members, result }) => {
                if self.is_on(lane, peer) {
                    let told = self.joints.ready(lane, transfer, members, result);
                    self.tell_lanes(lane.session, told);
                }
            }
            (Role::Worker, Message::Undelivered { transfer, to, reason }) => {
                self.undelivered(now, peer, transfer, to, reason);
            }
            (Role::Worker, Message::Statistics { request, workers }) => {
                self.answers.survey(outbox, request, peer, workers.into_iter().next());
            }
            (Role::Worker, Message::Report(report)) => {
                if let Some(worker) = self.workers.get(peer) {
                    self.observability.take_report(worker.id, peer, *report);
                }
            }
            (Role::Worker | Role::Client, Message::Events { events, dropped }) => {
                let peers = peers!(self);
                self.observability.take_events(now, peer, role, events, dropped, peers);
            }
            (Role::Worker | Role::Client, Message::Observed { sent, here }) => {
                self.observability.measure(now, outbox, peer, sent, here);
            }
            (Role::Watcher, Message::Watch { limit }) => {
                self.observability.give_events(outbox, peer, limit, peers!(self));
            }
            (Role::Watcher, Message::Stream(questions)) => match questions[..] {
                [ClientCommand::Status { request }] => self.answer_status(now, peer, request),
                _ => self.refuse(now, peer, "a watcher may only ask for the status".into()),
            },
            (role, Message::Release { token }) => match self.answers.mapped(token) {
                Some(owner) => self.release(now, owner, token),
                // One of the workers lent it before the server was started again.
                None if role == Role::Client && self.oldest > 0 => {
                    let workers = self.workers.iter();
                    workers.for_each(|it| outbox.push(it.peer, Message::Release { token }));
                }
                None => {}
            },
            (_, Message::Goodbye { .. }) => {
                if let Some(worker) = self.workers.get_mut(peer) {
                    worker.is_stopped = true;
                }
                self.disconnect(now, peer, "said goodbye");
            }
            (role, other) => {
                let reason = format!("a {} may not send {}", role.name(), other.name());
                self.refuse(now, peer, reason);
            }
        }
    }

    /// Advances the time: fails requests that have waited too long for a worker, and ends sessions
    /// whose time is over.
    pub fn tick(&mut self, now: Duration) {
        self.end_unrestored(now);
        let limit = self.limits.worker_wait;
        let is_empty = self.workers.len() == 0;
        for session in self.sessions.iter_mut() {
            if session.waits_for_any(is_empty).is_some_and(|since| now >= since + limit) {
                let given = waiting::fail_all(session, &mut self.outbox, limit);
                session.waiting_since = session.has_queued().then_some(now);
                session.give_back(&mut self.outbox, given);
            }
        }
        if self.limits.lineage.is_some() {
            self.take_snapshots(now);
        }
        self.revive(now);
        self.begin_trials(now);
        self.end_overdue(now);
        self.end_shortages(now);
        self.observability.tick(now, &mut self.outbox);
    }

    /// When [`Dispatcher::tick`] is due next, if any session waits for a worker or for memory, or has
    /// a limit.
    pub fn next_deadline(&self) -> Option<Duration> {
        let is_empty = self.workers.len() == 0;
        let since = self.sessions.iter().filter_map(|it| it.waits_for_any(is_empty)).min();
        let waiting = since.map(|since| since + self.limits.worker_wait);
        let there = self.sessions.iter().filter(|session| session.has_worker());
        let lineages = there.filter_map(|session| session.lineage.as_ref());
        // While a session is tried, no others take snapshots.
        let lineages = lineages.filter(|_| !self.trials.is_under_way());
        let snapshot = lineages.filter_map(|lineage| lineage.deadline()).min();
        let awaited = self.sessions.iter().filter_map(|session| session.awaited.as_ref());
        let wait = self.limits.worker_wait;
        let awaited = awaited.filter_map(|awaited| awaited.deadline(wait)).min();
        let awaited = awaited.filter(|_| self.workers.len() > 0);
        let own = waiting.into_iter().chain(snapshot).chain(awaited);
        own.chain(self.next_end()).chain(self.next_shortage()).chain(self.next_trial()).min()
    }

    /// Where a client's tensor is or will be computed as a whole: the worker, the lane, and its name
    /// there. `None` where what is read is part of a lineage, or the tensor failed.
    pub fn place_of(&self, client: PeerId, tensor: TensorId) -> Option<(PeerId, LaneId, TensorId)> {
        let session = self.sessions.get(client)?;
        if session.lineage.is_some() {
            return None;
        }
        let (slot, name) = session.catalogue.whole(tensor)?;
        let host = session.catalogue.slots.host(slot)?;
        let worker = self.workers.by_id(host)?.peer;
        Some((worker, LaneId { session: session.run, slot }, name))
    }

    /// Whether a lane is on the worker of a link: messages about it from others are ignored.
    fn is_on(&self, lane: LaneId, peer: PeerId) -> bool {
        let Some(session) = self.sessions.running(lane.session) else { return false };
        let host = session.catalogue.slots.host(lane.slot);
        host.is_some() && host == self.workers.get(peer).map(|worker| worker.id)
    }

    /// Sends messages to the workers of a session's slots.
    fn tell_lanes(&mut self, session: u32, messages: Vec<(SlotId, Message)>) {
        let Some(session) = self.sessions.running(session) else { return };
        for (slot, message) in messages {
            let host = session.catalogue.slots.host(slot);
            if let Some(worker) = host.and_then(|worker| self.workers.by_id(worker)) {
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
            // Workers know sessions by the numbers of their runs.
            let session = self.sessions.iter().find(|session| session.run == other.session);
            other.label = session.map(|session| session.label.clone()).unwrap_or_default();
        }
        let Some(request) = self.answers.close(request, peer) else {
            // The request was cancelled, or its client is gone: release the shared memory.
            if let Ok(Content::Shared { block, .. }) = &result {
                self.outbox.push(peer, Message::Release { token: block.token });
            }
            return;
        };
        if self.observability.is_on() {
            self.observability.emit_answer(now, peer, &request, &result, peers!(self));
        }
        if let Ok(Content::Shared { block, .. }) = &result {
            self.answers.share(block.token, peer, request.client);
        }
        if let Some(known) = request.known {
            let message = Message::Value { request: request.original, result };
            return self.compare(request.client, known, &message);
        }
        // Of a value that does not come there is no receipt.
        if result.is_err()
            && let Some(session) = self.sessions.get_mut(request.client)
        {
            session.unread.remove(request.original);
        }
        self.outbox.push(request.client, Message::Value { request: request.original, result });
    }

    /// Answers a status request.
    fn answer_status(&mut self, now: Duration, peer: PeerId, request: RequestId) {
        let Dispatcher { sessions, workers, answers, observability, rules, .. } = self;
        let cluster = Cluster { sessions, workers, answers, observability, rules };
        let status = cluster.status(now, peer);
        self.outbox.push(peer, Message::Status { request, status: Box::new(status) });
    }
}
