//! The dispatcher's state machine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gt_ir::message::{Failure, Hello, Message, Role, Welcome, WorkerStats};
use gt_ir::{Command, Content, Instruction, Operand, RequestId, SourceId, TensorId};
use rustc_hash::FxHashMap;

use crate::handle::TensorHandle;
use crate::log::{Event, Log};
use crate::pipeline::Pipeline;
use crate::pool::Pool;
use crate::session::{Request, Session};

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
struct Survey {
    client: PeerId,
    original: RequestId,
    open: usize,
    workers: Vec<WorkerStats>,
}

/// Takes messages from clients and workers, and gives messages for them.
pub struct Dispatcher {
    limits: Limits,
    machine: String,
    /// By peer, in the order of their arrival: each gets its turn.
    sessions: BTreeMap<PeerId, Session>,
    /// After whom the next round begins.
    last_served: Option<PeerId>,
    pool: Pool,
    pipeline: Pipeline,
    requests: FxHashMap<RequestId, Request>,
    surveys: FxHashMap<RequestId, Survey>,
    /// Shared blocks that are not mapped yet: who owns each, and who is to map it.
    blocks: FxHashMap<u128, (PeerId, PeerId)>,
    next_request: u64,
    next_session: u32,
    log: Option<Log>,
    outbox: Vec<(PeerId, Message)>,
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
            requests: FxHashMap::default(),
            surveys: FxHashMap::default(),
            blocks: FxHashMap::default(),
            next_request: 0,
            next_session: 1,
            log,
            outbox: Vec::new(),
        }
    }

    /// The stream modifiers.
    pub fn pipeline(&mut self) -> &mut Pipeline {
        &mut self.pipeline
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
                for (client, part) in self.pool.done(peer, weight) {
                    if client != PeerId::NOBODY {
                        self.outbox.push((client, Message::Done(part)));
                    }
                }
                self.pump(now);
            }
            (Role::Worker, Message::Value { request, result }) => {
                self.answer(now, peer, request, result);
            }
            (Role::Worker, Message::Statistics { request, workers }) => {
                self.survey(now, request, workers.into_iter().next());
            }
            (_, Message::Release { token }) => {
                if let Some((owner, _)) = self.blocks.remove(&token) {
                    self.outbox.push((owner, Message::Release { token }));
                }
            }
            (_, Message::Goodbye { .. }) => self.disconnect(now, peer, "said goodbye"),
            (Role::Client, Message::Config { .. }) => {}
            (role, other) => {
                let reason = format!("a {} may not send {}", role.name(), message_name(&other));
                self.refuse(now, peer, reason);
            }
        }
    }

    /// A peer's link is gone.
    pub fn disconnect(&mut self, now: Duration, peer: PeerId, reason: &str) {
        if let Some(session) = self.sessions.remove(&peer) {
            self.note(now, Event::Disconnect, &session.label, format_args!("reason={reason}"));
            if let Some(worker) = session.worker {
                self.pool.release(worker);
            }
            self.tell_workers(&Command::EndSession { session: session.number });
            self.requests.retain(|_, request| request.client != peer);
            self.surveys.retain(|_, survey| survey.client != peer);
        }
        if let Some(worker) = self.pool.remove(peer) {
            self.lose_worker(now, worker.peer, &worker.name, reason);
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
    }

    /// When [`Dispatcher::tick`] is due next, if somebody waits.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.sessions
            .values()
            .filter_map(|session| session.waiting_since)
            .min()
            .map(|since| since + self.limits.worker_wait)
    }

    fn welcome(&mut self, now: Duration, peer: PeerId, role: Role, hello: Hello) {
        use gt_ir::message::{PROTOCOL_VERSION, schema};
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
        let welcome = Welcome {
            session: number,
            window: self.limits.client_window,
            machine: self.machine.clone(),
        };
        match role {
            Role::Client => {
                // 20 bits of session number: after a million sessions they would be used again.
                self.next_session = if number + 1 < 1 << 20 { number + 1 } else { 1 };
                let label = format!("{}#{number}", hello.name);
                self.note(now, Event::Connect, &label, format_args!("session={number}"));
                let mut session = Session::new(peer, number, label, hello.machine);
                session.worker = self.pool.assign();
                self.sessions.insert(peer, session);
            }
            Role::Worker => {
                self.note(now, Event::WorkerRecv, &hello.name, format_args!("connected"));
                self.pool.add(peer, hello.name, hello.machine);
                for session in self.sessions.values_mut().filter(|session| session.worker.is_none())
                {
                    session.worker = self.pool.assign();
                    session.waiting_since = None;
                }
            }
            Role::Watcher => {}
        }
        self.outbox.push((peer, Message::Welcome(welcome)));
        self.pump(now);
    }

    fn refuse(&mut self, now: Duration, peer: PeerId, reason: String) {
        let label =
            self.sessions.get(&peer).map_or_else(|| format!("peer{}", peer.0), |s| s.label.clone());
        self.note(now, Event::Error, &label, format_args!("{reason}"));
        self.outbox.push((peer, Message::Goodbye { reason: reason.clone() }));
        if self.sessions.contains_key(&peer) || self.pool.get(peer).is_some() {
            self.disconnect(now, peer, &reason);
        }
    }

    fn receive(&mut self, now: Duration, peer: PeerId, batch: Vec<Command>) {
        let Some(session) = self.sessions.get_mut(&peer) else {
            return self.refuse(now, peer, "the session has ended: connect again".into());
        };
        if let Some(log) = &mut self.log {
            batch.iter().for_each(|command| log.command(now, Event::Recv, &session.label, command));
        }
        session.queue.push_back(batch);
        if session.worker.is_none() && session.waiting_since.is_none() {
            session.waiting_since = Some(now);
        }
        self.pump(now);
    }

    /// Hands queued batches to workers, one of each session in turn, as long as there is room.
    fn pump(&mut self, now: Duration) {
        loop {
            let after = self.last_served;
            let ready = |session: &&Session| {
                !session.queue.is_empty()
                    && session
                        .worker
                        .and_then(|worker| self.pool.get(worker))
                        .is_some_and(|worker| worker.in_flight < self.limits.worker_window)
            };
            // The first after the one served last, or else from the beginning.
            let next = self
                .sessions
                .values()
                .filter(ready)
                .min_by_key(|session| {
                    (after.is_some_and(|last| session.peer <= last), session.peer)
                })
                .map(|session| session.peer);
            let Some(peer) = next else { return };
            self.last_served = Some(peer);
            self.forward(now, peer);
        }
    }

    /// Sends the oldest batch of a session to its worker.
    fn forward(&mut self, now: Duration, peer: PeerId) {
        let session = self.sessions.get_mut(&peer).expect("chosen among the sessions");
        let batch = session.queue.pop_front().expect("chosen for its queue");
        let worker_peer = session.worker.expect("chosen for its worker");
        let batch = self.pipeline.process(batch);
        let total: u64 = batch.iter().map(Command::weight).sum();
        let (batch, question) = self.rewrite(peer, worker_peer, batch);
        let kept: u64 = batch.iter().map(Command::weight).sum();
        let worker = self.pool.get_mut(worker_peer).expect("the session's worker is in the pool");
        if let Some(log) = &mut self.log {
            for command in &batch {
                log.command(now, Event::WorkerSend, &worker.name, command);
            }
        }
        if kept > 0 {
            worker.in_flight += kept;
            worker.owners.push_back((peer, kept));
            self.outbox.push((worker_peer, Message::Stream(batch)));
        }
        if total > kept {
            self.outbox.push((peer, Message::Done(total - kept)));
        }
        if let Some(question) = question {
            self.tell_workers(&question);
        }
    }

    /// A client's commands as the worker is to see them. What the dispatcher answers itself is
    /// taken out; a question to all workers comes second.
    fn rewrite(
        &mut self,
        peer: PeerId,
        worker: PeerId,
        mut batch: Vec<Command>,
    ) -> (Vec<Command>, Option<Command>) {
        let shares_memory = self.pool.get(worker).is_some_and(|worker| {
            !worker.machine.is_empty() && worker.machine == self.sessions[&peer].machine
        });
        let session = self.sessions.get_mut(&peer).expect("checked by the caller");
        let number = session.number;
        let (mut refused, mut asked) = (None, None);
        batch.retain_mut(|command| match command {
            Command::Run(instruction) => match place(session, worker, instruction) {
                Ok(kept) => kept,
                Err(reason) => {
                    refused = Some(reason);
                    false
                }
            },
            Command::Create { output, content } => {
                let Some(qualified) = output.qualify(number) else {
                    refused = Some(format!("tensor number {output} is out of range"));
                    return false;
                };
                session.handles.insert(*output, TensorHandle::On(worker));
                *output = qualified;
                if let Content::Shared { block, .. } = content {
                    self.blocks.insert(block.token, (peer, worker));
                }
                true
            }
            Command::Free(id) => match session.handles.remove(id) {
                Some(TensorHandle::On(holder)) if holder == worker => {
                    *id = id.qualify(number).expect("it was in range when it was made");
                    true
                }
                _ => false,
            },
            Command::Fetch { request, tensor, shared } => {
                let failure = match session.handles.get(tensor) {
                    Some(TensorHandle::On(_)) => {
                        let mine = RequestId(self.next_request);
                        self.next_request += 1;
                        self.requests
                            .insert(mine, Request { client: peer, original: *request, worker });
                        *request = mine;
                        *tensor = tensor.qualify(number).expect("it was in range when it was made");
                        *shared = shares_memory;
                        return true;
                    }
                    Some(TensorHandle::Failed(failure)) => (**failure).clone(),
                    None => missing(*tensor),
                };
                let answer = Message::Value { request: *request, result: Err(failure) };
                self.outbox.push((peer, answer));
                false
            }
            Command::Stats { request } => {
                let mine = RequestId(self.next_request);
                self.next_request += 1;
                let open = self.pool.len();
                let survey = Survey { client: peer, original: *request, open, workers: Vec::new() };
                self.surveys.insert(mine, survey);
                asked = Some(Command::Stats { request: mine });
                false
            }
            Command::Signal { .. } => true,
            Command::EndSession { .. } => {
                refused = Some("a client may not end sessions by command".into());
                false
            }
        });
        if let Some(reason) = refused {
            self.outbox.push((peer, Message::Goodbye { reason }));
        }
        (batch, asked)
    }

    /// Sends every worker a command of the dispatcher's own.
    fn tell_workers(&mut self, command: &Command) {
        for worker in self.pool.iter_mut() {
            worker.in_flight += command.weight();
            worker.owners.push_back((PeerId::NOBODY, command.weight()));
            self.outbox.push((worker.peer, Message::Stream(vec![command.clone()])));
        }
    }

    /// Passes a worker's answer on to the client that asked.
    fn answer(
        &mut self,
        now: Duration,
        peer: PeerId,
        request: RequestId,
        result: Result<Content, Failure>,
    ) {
        // Only the worker that was asked may answer.
        if self.requests.get(&request).is_none_or(|open| open.worker != peer) {
            return;
        }
        let request = self.requests.remove(&request).expect("it was there a line ago");
        if let Some(log) = &mut self.log {
            let bytes = result.as_ref().map_or(0, |content| content.meta().bytes());
            let success = result.is_ok();
            let details = format_args!("success={success}");
            if let Some(worker) = self.pool.get(peer) {
                log.write(now, Event::WorkerRecv, &worker.name, "WorkerGetData", bytes, details);
            }
            if let Some(session) = self.sessions.get(&request.client) {
                log.write(now, Event::Send, &session.label, "GetData", bytes, details);
            }
        }
        if let Ok(Content::Shared { block, .. }) = &result {
            self.blocks.insert(block.token, (peer, request.client));
        }
        self.outbox.push((request.client, Message::Value { request: request.original, result }));
    }

    /// One more worker's statistics for a survey; answered when all are in.
    fn survey(&mut self, _now: Duration, request: RequestId, stats: Option<WorkerStats>) {
        let Some(survey) = self.surveys.get_mut(&request) else { return };
        survey.workers.extend(stats);
        survey.open = survey.open.saturating_sub(1);
        if survey.open == 0 {
            let mut survey = self.surveys.remove(&request).expect("it was there a line ago");
            survey.workers.sort_by(|a, b| a.name.cmp(&b.name));
            let answer = Message::Statistics { request: survey.original, workers: survey.workers };
            self.outbox.push((survey.client, answer));
        }
    }

    /// Everything on a lost worker fails; its sessions go on elsewhere.
    fn lose_worker(&mut self, now: Duration, worker: PeerId, name: &str, reason: &str) {
        if let Some(log) = &mut self.log {
            let details = format_args!("disconnected reason={reason}");
            log.write(now, Event::WorkerRecv, name, "WorkerLost", 0, details);
        }
        let failure = Arc::new(Failure {
            operation: "fetch".into(),
            reason: format!("the worker '{name}' that held the tensor was lost ({reason})"),
            worker: name.to_string(),
            line: SourceId::default(),
        });
        for session in self.sessions.values_mut() {
            for handle in session.handles.values_mut() {
                if matches!(handle, TensorHandle::On(holder) if *holder == worker) {
                    *handle = TensorHandle::Failed(Arc::clone(&failure));
                }
            }
            if session.worker == Some(worker) {
                session.worker = self.pool.assign();
                if session.worker.is_none() && !session.queue.is_empty() {
                    session.waiting_since = Some(now);
                }
            }
        }
        let mut lost: Vec<RequestId> = self
            .requests
            .iter()
            .filter(|(_, request)| request.worker == worker)
            .map(|(id, _)| *id)
            .collect();
        lost.sort_unstable();
        for id in lost {
            let request = self.requests.remove(&id).expect("listed a line ago");
            let result = Err((*failure).clone());
            self.outbox
                .push((request.client, Message::Value { request: request.original, result }));
        }
        let mut surveys: Vec<RequestId> = self.surveys.keys().copied().collect();
        surveys.sort_unstable();
        surveys.into_iter().for_each(|survey| self.survey(now, survey, None));
    }

    /// Answers the requests of a session that has waited too long for a worker.
    fn fail_waiting(&mut self, now: Duration, peer: PeerId) {
        let seconds = self.limits.worker_wait.as_secs_f64();
        let Some(session) = self.sessions.get_mut(&peer) else { return };
        let reason = format!(
            "no worker is connected to the server, and none came within {seconds} s\n  hint: start one with `python -m gt.worker --host HOST --port PORT`"
        );
        session.waiting_since = Some(now);
        for batch in &mut session.queue {
            batch.retain(|command| {
                let Command::Fetch { request, .. } = command else { return true };
                let failure = Failure {
                    operation: "fetch".into(),
                    reason: reason.clone(),
                    worker: String::new(),
                    line: SourceId::default(),
                };
                let answer = Message::Value { request: *request, result: Err(failure) };
                self.outbox.push((peer, answer));
                false
            });
        }
        session.queue.retain(|batch| !batch.is_empty());
        if session.queue.is_empty() {
            session.waiting_since = None;
        }
    }

    fn note(&mut self, now: Duration, event: Event, party: &str, details: std::fmt::Arguments) {
        if let Some(log) = &mut self.log {
            let command = if event == Event::Error { "Refused" } else { "Link" };
            log.write(now, event, party, command, 0, details);
        }
    }
}

/// Gives an instruction the workers' ids. `Ok(false)` if it cannot run, because something it
/// needs has failed; `Err` if it names what no valid client would.
fn place(
    session: &mut Session,
    worker: PeerId,
    instruction: &mut Instruction,
) -> Result<bool, String> {
    let number = session.number;
    let local = instruction.output;
    let Some(output) = local.qualify(number) else {
        return Err(format!("tensor number {local} is out of range"));
    };
    let mut failure = None;
    for operand in &mut instruction.operands {
        let Operand::Tensor(id) = operand else { continue };
        match session.handles.get(id) {
            Some(TensorHandle::On(_)) => {
                *id = id.qualify(number).expect("it was in range when it was made");
            }
            Some(TensorHandle::Failed(cause)) => failure = Some(Arc::clone(cause)),
            None => failure = Some(Arc::new(missing(*id))),
        }
    }
    instruction.output = output;
    match failure {
        Some(cause) => {
            session.handles.insert(local, TensorHandle::Failed(cause));
            Ok(false)
        }
        None => {
            session.handles.insert(local, TensorHandle::On(worker));
            Ok(true)
        }
    }
}

fn missing(tensor: TensorId) -> Failure {
    Failure {
        operation: "fetch".into(),
        reason: format!("tensor {tensor} does not exist in this session"),
        worker: String::new(),
        line: SourceId::default(),
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
        Message::Config { .. } => "a configuration",
        Message::Goodbye { .. } => "a goodbye",
    }
}
