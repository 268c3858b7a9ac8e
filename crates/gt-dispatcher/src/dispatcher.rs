//! The dispatcher's state machine.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use gt_ir::message::{Failure, Hello, Message, Role, Welcome, WorkerStats};
use gt_ir::{Command, Meta, Piece, RequestId, SourceId, TensorId, TransferId, WorkerId};
use rustc_hash::FxHashMap;

use crate::log::{Entry, Log, word};
use crate::pipeline::Pipeline;
use crate::planner::{Planner, Streams};
use crate::pool::{Pool, WorkerState};
use crate::schedule::Batch;
use crate::session::{Request, Session};
use crate::watch::Watch;

/// Names a link, as the driver numbers them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PeerId(pub u64);

impl PeerId {
    /// No link: drivers count from 1.
    pub const NOBODY: PeerId = PeerId(0);
}

/// What bounds queues and waits.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How much weight of commands a client may have under way.
    pub client_window: u64,
    /// How much weight may be under way to one worker.
    pub worker_window: u64,
    /// How long a client waits for a first worker before its requests fail.
    pub worker_wait: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            client_window: 16 << 10,
            worker_window: 2 << 10,
            worker_wait: Duration::from_secs(30),
        }
    }
}

/// Statistics asked of all workers, not all in yet.
pub(crate) struct Survey {
    pub client: PeerId,
    pub original: RequestId,
    /// Whose are still to come.
    pub open: BTreeSet<PeerId>,
    pub workers: Vec<WorkerStats>,
}

/// Takes messages from clients and workers, and gives messages for them.
pub struct Dispatcher {
    pub(crate) limits: Limits,
    machine: String,
    /// By peer, in the order of their arrival: each gets its turn.
    pub(crate) sessions: BTreeMap<PeerId, Session>,
    /// After whom the next round begins.
    pub(crate) last_served: Option<PeerId>,
    pub(crate) pool: Pool,
    pub(crate) pipeline: Pipeline,
    pub(crate) planner: Planner,
    pub(crate) streams: Streams,
    pub(crate) batches: FxHashMap<u64, Batch>,
    pub(crate) requests: FxHashMap<RequestId, Request>,
    pub(crate) surveys: FxHashMap<RequestId, Survey>,
    /// Shared blocks that are not mapped yet: who owns each, and who is to map it.
    pub(crate) blocks: FxHashMap<u128, (PeerId, PeerId)>,
    pub(crate) next_request: u64,
    pub(crate) next_batch: u64,
    next_session: u32,
    /// How often the numbers of sessions have begun anew.
    generation: u64,
    pub(crate) log: Option<Log>,
    pub(crate) watch: Watch,
    /// What the invocations on their way to workers stand for, for the log.
    pub(crate) unfolded: VecDeque<(WorkerId, Vec<Command>)>,
    pub(crate) outbox: Vec<(PeerId, Message)>,
}

impl Dispatcher {
    /// A dispatcher on `machine` (see [`Hello::machine`]).
    pub fn new(machine: String, limits: Limits, log: Option<Log>) -> Dispatcher {
        Dispatcher {
            limits,
            machine,
            sessions: BTreeMap::new(),
            last_served: None,
            pool: Pool::default(),
            pipeline: Pipeline::default(),
            planner: Planner::default(),
            streams: Streams::default(),
            batches: FxHashMap::default(),
            requests: FxHashMap::default(),
            surveys: FxHashMap::default(),
            blocks: FxHashMap::default(),
            next_request: 0,
            next_batch: 1,
            next_session: 1,
            generation: 0,
            log,
            watch: Watch::default(),
            unfolded: VecDeque::new(),
            outbox: Vec::new(),
        }
    }

    /// The stream modifiers.
    pub fn pipeline(&mut self) -> &mut Pipeline {
        &mut self.pipeline
    }

    /// The planner, to be told how to plan.
    pub fn planner(&mut self) -> &mut Planner {
        &mut self.planner
    }

    /// How many clients and workers there are.
    pub fn population(&self) -> (usize, usize) {
        (self.sessions.len(), self.pool.len())
    }

    /// The messages that wait to be sent, in order.
    pub fn take_outbox(&mut self, into: &mut Vec<(PeerId, Message)>) {
        into.append(&mut self.outbox);
    }

    /// Takes a message from a peer whose link proves `role`.
    pub fn handle(&mut self, now: Duration, peer: PeerId, role: Role, message: Message) {
        match (role, message) {
            (_, Message::Hello(hello)) => self.welcome(now, peer, role, hello),
            (Role::Client, Message::Stream(batch)) => self.receive(now, peer, batch),
            (Role::Worker, Message::Done(weight)) => {
                for batch in self.pool.done(now, peer, weight) {
                    self.batch_done(batch);
                }
                self.pump(now);
            }
            (Role::Worker, Message::Value { request, result }) => {
                self.answer(now, peer, request, result);
            }
            (Role::Worker, Message::Undelivered { transfer, to, reason }) => {
                self.undelivered(peer, transfer, to, reason);
            }
            (Role::Worker, Message::Described { session, tensors }) => {
                self.described(now, peer, session, tensors);
            }
            (Role::Worker, Message::Statistics { request, workers }) => {
                self.survey(request, peer, workers.into_iter().next());
            }
            (Role::Worker, Message::Report(report)) => self.take_report(peer, *report),
            (Role::Worker | Role::Client, Message::Events { events, dropped }) => {
                self.take_events(now, peer, role, events, dropped);
            }
            (Role::Worker | Role::Client, Message::Observed { sent, here }) => {
                self.measure(now, peer, sent, here);
            }
            (Role::Watcher, Message::Watch { limit }) => self.give_events(peer, limit),
            (Role::Watcher, Message::Stream(questions)) => {
                self.answer_watcher(now, peer, &questions);
            }
            (_, Message::Release { token }) => {
                if let Some((owner, _)) = self.blocks.remove(&token) {
                    self.outbox.push((owner, Message::Release { token }));
                }
            }
            (_, Message::Goodbye { .. }) => self.disconnect(now, peer, "said goodbye"),
            (role, other) => {
                let reason = format!("a {} may not send {}", role.name(), message_name(&other));
                self.refuse(now, peer, reason);
            }
        }
    }

    /// A peer's link is gone.
    pub fn disconnect(&mut self, now: Duration, peer: PeerId, reason: &str) {
        if let Some(session) = self.sessions.remove(&peer) {
            self.note(now, Entry::Disconnect, &session.label, format_args!("reason={reason}"));
            if let Some(worker) = session.home {
                self.pool.release(worker);
            }
            self.tell_workers(now, &Command::EndSession { session: session.number });
            self.requests.retain(|_, request| request.client != peer);
            self.surveys.retain(|_, survey| survey.client != peer);
            self.batches.retain(|_, batch| batch.client != peer);
        }
        self.remove_watcher(now, peer);
        if let Some(worker) = self.pool.remove(peer) {
            self.watch.reports.remove(&worker.id);
            self.lose_worker(now, &worker, reason);
        }
        self.release_blocks(peer);
        self.pump(now);
    }

    /// Blocks that a lost peer was to map are let go of by their owners.
    fn release_blocks(&mut self, peer: PeerId) {
        let mut open: Vec<(u128, PeerId)> = self
            .blocks
            .iter()
            .filter(|(_, (_, receiver))| *receiver == peer)
            .map(|(token, (owner, _))| (*token, *owner))
            .collect();
        open.sort_unstable();
        for (token, owner) in open {
            self.outbox.push((owner, Message::Release { token }));
        }
        self.blocks.retain(|_, (owner, receiver)| *owner != peer && *receiver != peer);
    }

    /// Lets time pass: whoever waited too long is told.
    pub fn tick(&mut self, now: Duration) {
        let limit = self.limits.worker_wait;
        let late: Vec<PeerId> = self
            .sessions
            .values()
            .filter(|session| session.waiting_since.is_some_and(|since| now >= since + limit))
            .map(|session| session.peer)
            .collect();
        for peer in late {
            self.fail_waiting(now, peer);
        }
        if self.is_watched() {
            let due = self.watch.clocks.due(now);
            due.into_iter().for_each(|peer| self.observe(now, peer, true));
        }
    }

    /// When [`Dispatcher::tick`] is due next, if somebody waits.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.sessions
            .values()
            .filter_map(|session| session.waiting_since)
            .min()
            .map(|since| since + self.limits.worker_wait)
    }

    fn welcome(&mut self, now: Duration, peer: PeerId, role: Role, mut hello: Hello) {
        use gt_ir::message::{PROTOCOL_VERSION, schema};
        hello.name = word(&hello.name);
        if hello.version != PROTOCOL_VERSION || hello.schema != schema() {
            let reason = format!(
                "this server speaks protocol {PROTOCOL_VERSION} (instruction set {:016x}), the {} '{}' speaks {} ({:016x})\n  hint: install the same version of gt on both sides",
                schema(),
                role.name(),
                hello.name,
                hello.version,
                hello.schema
            );
            return self.refuse(now, peer, reason);
        }
        if self.sessions.contains_key(&peer) || self.pool.get(peer).is_some() {
            return self.refuse(now, peer, "said hello twice".into());
        }
        let number = self.next_session;
        let mut welcome = Welcome {
            session: number,
            name: hello.name.clone(),
            window: self.limits.client_window,
            machine: self.machine.clone(),
        };
        match role {
            Role::Client => {
                self.next_session = self.free_session_number(number);
                self.generation += u64::from(self.next_session < number);
                let label = format!("{}#{number}", hello.name);
                self.note(now, Entry::Connect, &label, format_args!("session={number}"));
                let generation = self.generation;
                let session = Session::new(now, peer, number, generation, label, hello.machine);
                self.sessions.insert(peer, session);
                self.give_homes();
            }
            Role::Worker => {
                let worker = self.pool.add(peer, hello);
                (welcome.session, welcome.name) = (worker.id.0, worker.name.clone());
                self.note(now, Entry::WorkerRecv, &welcome.name, format_args!("connected"));
                self.planner.set_workers(self.pool.numbers(), self.pool.fabrics());
                self.give_homes();
                self.plan_sessions(now);
            }
            Role::Watcher => self.add_watcher(now, peer),
        }
        self.outbox.push((peer, Message::Welcome(welcome)));
        if role != Role::Watcher && self.is_watched() {
            self.observe(now, peer, true);
        }
        if role == Role::Worker {
            self.introduce(peer);
        }
        self.pump(now);
    }

    pub(crate) fn refuse(&mut self, now: Duration, peer: PeerId, reason: String) {
        let label =
            self.sessions.get(&peer).map_or_else(|| format!("peer{}", peer.0), |s| s.label.clone());
        self.note(now, Entry::Error, &label, format_args!("{reason}"));
        self.outbox.push((peer, Message::Goodbye { reason: reason.clone() }));
        if self.sessions.contains_key(&peer) || self.pool.get(peer).is_some() {
            self.disconnect(now, peer, &reason);
        }
    }

    /// The next session's number. It has 20 bits: after a million sessions numbers are used
    /// again, but for those of sessions that go on.
    fn free_session_number(&self, last: u32) -> u32 {
        let taken = |number: u32| {
            number == last || self.sessions.values().any(|session| session.number == number)
        };
        let after = |number: u32| if number + 1 < 1 << 20 { number + 1 } else { 1 };
        let mut next = after(last);
        while taken(next) {
            next = after(next);
        }
        next
    }

    /// Tells a new worker of the others, and them of it.
    fn introduce(&mut self, newcomer: PeerId) {
        let neighbour = |worker: &WorkerState| Message::Neighbour {
            worker: worker.id,
            name: worker.name.clone(),
            endpoint: worker.endpoint.clone(),
            machine: worker.machine.clone(),
        };
        let Some(new) = self.pool.get(newcomer) else { return };
        if new.endpoint.is_empty() {
            return;
        }
        for other in self.pool.iter().filter(|other| other.peer != newcomer) {
            self.outbox.push((newcomer, neighbour(other)));
            self.outbox.push((other.peer, neighbour(new)));
        }
    }

    /// A worker could not send another one a piece, which must not wait for it.
    fn undelivered(&mut self, from: PeerId, transfer: TransferId, to: WorkerId, reason: String) {
        let Some(sender) = self.pool.get(from) else { return };
        let (from, name) = (sender.id, sender.name.clone());
        if let Some(receiver) = self.pool.get_by_id(to) {
            let reason = format!(
                "worker '{name}' cannot reach worker '{}': {reason}\n  hint: workers on several machines must reach each other; start them with --peer-host ADDRESS",
                receiver.name
            );
            let line = SourceId::default();
            let failure = Failure { operation: "send".into(), reason, worker: name, line };
            let piece = Piece { transfer, from, result: Err(failure) };
            self.outbox.push((receiver.peer, Message::Piece(piece)));
        }
    }

    /// Gives every session without one a worker at which its tensors begin.
    fn give_homes(&mut self) {
        for session in self.sessions.values_mut().filter(|session| session.home.is_none()) {
            let Some((peer, worker)) = self.pool.assign() else { return };
            session.home = Some(peer);
            session.waiting_since = None;
            self.planner.settle(&mut session.tensors, worker);
            // A first and only worker gets everything as it comes.
            session.tensors.direct = self.pool.len() == 1 && session.tensors.is_new();
        }
    }

    /// With a second worker there is something to plan, for which the planner must know the
    /// tensors that the first one has.
    fn plan_sessions(&mut self, now: Duration) {
        if self.pool.len() < 2 {
            return;
        }
        let direct = self.sessions.values().filter(|session| session.tensors.direct);
        let direct: Vec<PeerId> = direct.map(|session| session.peer).collect();
        direct.into_iter().for_each(|peer| self.plan_session(now, peer));
    }

    /// From now on a session is planned, once its worker has told which tensors it has.
    pub(crate) fn plan_session(&mut self, now: Duration, peer: PeerId) {
        let Some(session) = self.sessions.get_mut(&peer) else { return };
        session.tensors.direct = false;
        if session.tensors.is_new() {
            return;
        }
        session.is_described = false;
        if let Some(home) = session.home {
            let question = Command::Describe { session: session.number };
            self.tell_worker(now, home, question);
        }
    }

    /// A worker has told which tensors of a session it has.
    fn described(
        &mut self,
        now: Duration,
        peer: PeerId,
        number: u32,
        tensors: Vec<(TensorId, Result<Meta, Failure>)>,
    ) {
        let asked = |session: &&mut Session| {
            session.number == number && !session.is_described && session.home == Some(peer)
        };
        if let Some(session) = self.sessions.values_mut().find(asked) {
            session.is_described = true;
            session.tensors.learn(tensors);
            self.pump(now);
        }
    }

    /// Everything that only a lost worker had fails; its sessions go on elsewhere.
    fn lose_worker(&mut self, now: Duration, lost: &WorkerState, reason: &str) {
        if let Some(log) = &mut self.log {
            let details = format_args!("disconnected reason={reason}");
            log.write(now, Entry::WorkerRecv, &lost.name, "WorkerLost", 0, details);
        }
        let failure = Arc::new(Failure {
            operation: "fetch".into(),
            reason: format!("the worker '{}' that held the tensor was lost ({reason})", lost.name),
            worker: lost.name.clone(),
            line: SourceId::default(),
        });
        self.planner.set_workers(self.pool.numbers(), self.pool.fabrics());
        for worker in self.pool.iter() {
            let message = Message::WorkerLost { worker: lost.id, name: lost.name.clone() };
            self.outbox.push((worker.peer, message));
        }
        for session in self.sessions.values_mut() {
            let tensors = &mut session.tensors;
            if session.home == Some(lost.peer) && !session.is_described {
                tensors.lose_all(&failure);
            }
            self.planner.lose_worker(tensors, &mut self.streams, lost.id, &failure);
            session.busy.retain(|peer| *peer != lost.peer);
            if session.home == Some(lost.peer) {
                session.home = None;
                session.is_described = true;
                if !session.queue.is_empty() {
                    session.waiting_since = Some(now);
                }
            }
        }
        self.give_homes();
        for (batch, _) in &lost.owners {
            self.batch_done(*batch);
        }
        self.send_streams(now, PeerId::NOBODY, 0);
        let mut open: Vec<RequestId> = self
            .requests
            .iter()
            .filter(|(_, request)| request.worker == lost.peer)
            .map(|(id, _)| *id)
            .collect();
        open.sort_unstable();
        for id in open {
            let request = self.requests.remove(&id).expect("listed a line ago");
            let result = Err((*failure).clone());
            self.outbox
                .push((request.client, Message::Value { request: request.original, result }));
        }
        let mut surveys: Vec<RequestId> = self.surveys.keys().copied().collect();
        surveys.sort_unstable();
        surveys.into_iter().for_each(|survey| self.survey(survey, lost.peer, None));
    }

    pub(crate) fn note(
        &mut self,
        now: Duration,
        event: Entry,
        party: &str,
        details: std::fmt::Arguments,
    ) {
        if let Some(log) = &mut self.log {
            let command = if event == Entry::Error { "Refused" } else { "Link" };
            log.write(now, event, party, command, 0, details);
        }
    }
}

fn message_name(message: &Message) -> &'static str {
    match message {
        Message::Hello(_) => "a hello",
        Message::Welcome(_) => "a welcome",
        Message::Stream(_) => "a stream",
        Message::Done(_) => "credit",
        Message::Value { .. } => "a value",
        Message::Release { .. } => "a release",
        Message::Statistics { .. } => "statistics",
        Message::Explained { .. } | Message::Located { .. } => "an explanation",
        Message::Described { .. } => "a description",
        Message::Piece(_) => "a piece",
        Message::Neighbour { .. } => "a neighbour",
        Message::Undelivered { .. } => "a piece's fate",
        Message::WorkerLost { .. } => "the loss of a worker",
        Message::Status { .. } | Message::Report(_) => "a status",
        Message::Observe { .. } | Message::Observed { .. } => "a question for events",
        Message::Events { .. } | Message::Names(_) => "events",
        Message::Watch { .. } => "a watcher's question",
        Message::Goodbye { .. } => "a goodbye",
    }
}
