//! Clients' batches, planned and handed to workers in turn.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use gt_ir::event::{Kind, Lane};
use gt_ir::explain::Explanation;
use gt_ir::message::Message;
use gt_ir::template::expand;
use gt_ir::{Command, Content, Invocation, Operand, RequestId, SourceId, TensorId, WorkerId};

use crate::dispatcher::{Dispatcher, PeerId, Survey};
use crate::log::Entry;
use crate::planner::{Scope, Tensors};
use crate::session::{Queued, Request, Session};
use crate::templates::{Templates, rename};
use crate::watch::of_batch;

/// A name that no tensor has.
const NOTHING: TensorId = TensorId(u64::MAX);

/// How many windows a client may send without credit before it is sent away.
const OVERDRAFT: u64 = 16;

/// Waits so short are not worth an event.
const SOON: Duration = Duration::from_micros(1);

const FORBIDDEN: &str = "a client may not send this command";

/// A client's batch, parts of which are under way to workers.
pub(crate) struct Batch {
    pub client: PeerId,
    /// What the client gets back when all parts are done.
    weight: u64,
    /// How many workers have a part of it.
    open: usize,
}

impl Dispatcher {
    pub(crate) fn receive(&mut self, now: Duration, peer: PeerId, mut batch: Vec<Command>) {
        let Some(session) = self.sessions.get_mut(&peer) else {
            return self.refuse(now, peer, "the session has ended: connect again".into());
        };
        let weight: u64 = batch.iter().map(Command::weight).sum();
        session.instructions += weight;
        let number = session.number;
        if let Some(log) = &mut self.log {
            for command in &batch {
                if let Command::Invoke(_) = command {
                    log.hot_path(now, Entry::Recv, &session.label, command, &[]);
                } else {
                    log.command(now, Entry::Recv, &session.label, command);
                }
            }
        }
        self.tell_commands(now, Kind::Receive, Lane::Client, number, &batch);
        // How everybody is can be told at once, and most of all when nothing goes on. A question
        // ends its batch.
        while let Some(Command::Status { request }) = batch.last() {
            self.answer_status(now, peer, *request);
            batch.pop();
        }
        let Some(session) = self.sessions.get_mut(&peer) else { return };
        // Whoever keeps to the window sends one batch beyond it at most, from each of its threads.
        let limit = OVERDRAFT * self.limits.client_window;
        if session.open > limit {
            let reason = format!(
                "the session sent more than {limit} commands without waiting for credit for them"
            );
            return self.refuse(now, peer, reason);
        }
        session.open += weight;
        if batch.is_empty() {
            return self.give_back(peer, weight);
        }
        session.queue.push_back(Queued { commands: batch, weight, since: now });
        if session.home.is_none() {
            self.fail_lost(now, peer);
        }
        let Some(session) = self.sessions.get_mut(&peer) else { return };
        if session.home.is_none() && !session.queue.is_empty() && session.waiting_since.is_none() {
            session.waiting_since = Some(now);
        }
        self.pump(now);
    }

    /// Hands queued batches to workers, one of each session in turn, as long as there is room.
    pub(crate) fn pump(&mut self, now: Duration) {
        loop {
            let after = self.last_served;
            let has_room = |peer: &PeerId| {
                let limit = self.limits.worker_window;
                self.pool.get(*peer).is_none_or(|worker| worker.in_flight < limit)
            };
            let ready = |session: &&Session| {
                !session.queue.is_empty()
                    && session.home.is_some()
                    && session.is_described
                    && session.busy.iter().chain(&session.home).all(has_room)
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

    /// Plans the oldest batch of a session and sends the workers their parts.
    fn forward(&mut self, now: Duration, peer: PeerId) {
        let session = self.sessions.get_mut(&peer).expect("chosen among the sessions");
        let Queued { commands: batch, weight, since } =
            session.queue.pop_front().expect("chosen for its queue");
        let asks =
            |command: &Command| matches!(command, Command::Explain { .. } | Command::Locate { .. });
        if session.tensors.direct && batch.iter().any(asks) {
            // Only what is planned can be explained: the batch waits until this session is.
            session.queue.push_front(Queued { commands: batch, weight, since });
            return self.plan_session(now, peer);
        }
        let is_direct = session.tensors.direct;
        let begin = self.is_watched().then(|| self.watch.time(now));
        let batch = self.pipeline.process(batch);
        let planned = if is_direct {
            self.pass(now, peer, batch)
        } else {
            // A mistake in the planner ends this session, not everybody's server.
            let plan = || {
                batch.into_iter().try_fold(None, |question: Option<Command>, command| {
                    Ok(self.plan(now, peer, command)?.or(question))
                })
            };
            catch_unwind(AssertUnwindSafe(plan)).unwrap_or_else(|_| {
                Err("the planner failed on an instruction of the session".into())
            })
        };
        match planned {
            Ok(question) => {
                if let Some(begin) = begin {
                    self.note_batch(now, peer, weight, since, begin);
                }
                self.send_streams(now, peer, weight);
                if let Some(question) = question {
                    self.tell_workers(now, &question);
                }
            }
            Err(reason) => {
                // What was planned of this batch is not sent: the session ends.
                self.streams.take();
                self.unfolded.clear();
                self.refuse(now, peer, reason);
            }
        }
    }

    /// Notes that a batch that came at `since` was planned from `begin` on.
    fn note_batch(
        &mut self,
        now: Duration,
        peer: PeerId,
        weight: u64,
        since: Duration,
        begin: Duration,
    ) {
        let Some(session) = self.sessions.get(&peer) else { return };
        let end = self.watch.time(now);
        let queued = of_batch(Kind::Queue, session, weight, since, begin);
        let planned = of_batch(Kind::Plan, session, weight, begin, end);
        if begin > since + SOON {
            self.tell(now, queued);
        }
        self.tell(now, planned);
    }

    /// Gives the only worker a batch as it comes, with the names that workers know tensors by.
    fn pass(
        &mut self,
        now: Duration,
        peer: PeerId,
        mut batch: Vec<Command>,
    ) -> Result<Option<Command>, String> {
        let session = self.sessions.get_mut(&peer).expect("checked by the caller");
        let (worker, _) = session.tensors.home.clone().expect("sessions are served with a worker");
        let holder = self.pool.get_by_id(worker).expect("the session's worker is in the pool");
        let shares_memory = !holder.machine.is_empty() && holder.machine == session.machine;
        let Session { tensors, templates, .. } = session;
        let holder = holder.peer;
        let (mut refused, mut asked) = (None, None);
        let has_log = self.log.is_some();
        batch.retain_mut(|command| match command {
            Command::Run(instruction) => {
                for operand in &mut instruction.operands {
                    if let Operand::Tensor(id) = operand {
                        // What no client would name exists nowhere.
                        *id = tensors.qualify(*id).unwrap_or(NOTHING);
                    }
                }
                match tensors.qualify_new(instruction.output) {
                    Ok(name) => instruction.output = name,
                    Err(reason) => refused = Some(reason),
                }
                true
            }
            Command::Create { output, content, .. } => {
                match tensors.qualify_new(*output) {
                    Ok(name) => *output = name,
                    Err(reason) => refused = Some(reason),
                }
                if let Content::Shared { block, .. } = content {
                    self.blocks.insert(block.token, (peer, holder));
                }
                true
            }
            Command::Free(id) => match tensors.qualify(*id) {
                Some(name) => {
                    *id = name;
                    true
                }
                None => false,
            },
            Command::Fetch { request, tensor, shared, .. } => {
                let mine = RequestId(self.next_request);
                self.next_request += 1;
                let (client, original) = (peer, *request);
                let open =
                    Request { client, original, worker: holder, tensor: *tensor, since: now };
                self.requests.insert(mine, open);
                *request = mine;
                *tensor = tensors.qualify(*tensor).unwrap_or(NOTHING);
                *shared = shares_memory;
                true
            }
            Command::Signal { number, name, shard } => {
                let scope = Scope::new(std::mem::take(name), shard.take());
                tensors.signals.insert(*number, scope);
                tensors.signals_version += 1;
                false
            }
            Command::Stats { request } => {
                asked = Some(*request);
                false
            }
            Command::Strict { limit } => {
                tensors.strict = *limit;
                false
            }
            Command::Explain { .. } | Command::Locate { .. } => {
                unreachable!("sessions that ask for these are planned")
            }
            Command::Define(definition) => match templates.define(definition) {
                Ok(()) => {
                    rename(definition, |id| tensors.qualify(id).unwrap_or(NOTHING));
                    true
                }
                Err(error) => {
                    refused = Some(error.to_string());
                    false
                }
            },
            Command::Invoke(invocation) => {
                match qualify_invocation(invocation, tensors, templates, has_log) {
                    Ok(unfolded) => {
                        self.unfolded.extend(unfolded.map(|commands| (worker, commands)));
                        true
                    }
                    Err(reason) => {
                        refused = Some(reason);
                        false
                    }
                }
            }
            Command::EndSession { .. }
            | Command::Describe { .. }
            | Command::Exchange(_)
            | Command::Script(_)
            | Command::Play(_)
            | Command::Status { .. } => {
                refused = Some(FORBIDDEN.into());
                false
            }
        });
        if let Some(reason) = refused {
            return Err(reason);
        }
        if !batch.is_empty() {
            self.streams.put(worker, batch);
        }
        Ok(asked.and_then(|request| self.open_survey(peer, request)))
    }

    /// Sends all workers what was planned for them. The client gets its weight back when they
    /// are done with it.
    pub(crate) fn send_streams(&mut self, now: Duration, client: PeerId, weight: u64) {
        let number = self.next_batch;
        self.next_batch += 1;
        let mut busy = Vec::new();
        let owner = self.sessions.get(&client).map_or(0, |session| session.number);
        for (worker, commands) in self.streams.take() {
            let Some(worker) = self.pool.get_by_id(worker) else { continue };
            if let Some(log) = &mut self.log {
                for command in &commands {
                    if let Command::Invoke(_) | Command::Play(_) = command {
                        let place = self.unfolded.iter().position(|(of, _)| *of == worker.id);
                        let commands = place.and_then(|place| self.unfolded.remove(place));
                        let commands = commands.map_or_else(Vec::new, |(_, commands)| commands);
                        log.hot_path(now, Entry::WorkerSend, &worker.name, command, &commands);
                    } else {
                        log.command(now, Entry::WorkerSend, &worker.name, command);
                    }
                }
            }
            let weight = commands.iter().map(Command::weight).sum();
            worker.owe(now, number, weight);
            busy.push(worker.peer);
            let (peer, lane) = (worker.peer, Lane::Worker(worker.id));
            self.tell_commands(now, Kind::Dispatch, lane, owner, &commands);
            self.outbox.push((peer, Message::Stream(commands)));
        }
        let open = busy.len();
        if let Some(session) = self.sessions.get_mut(&client) {
            session.busy = busy;
        }
        if open > 0 {
            self.batches.insert(number, Batch { client, weight, open });
        } else {
            self.give_back(client, weight);
        }
    }

    /// Gives a client back the weight of what is done.
    pub(crate) fn give_back(&mut self, client: PeerId, weight: u64) {
        if let Some(session) = self.sessions.get_mut(&client).filter(|_| weight > 0) {
            session.open = session.open.saturating_sub(weight);
            self.outbox.push((client, Message::Done(weight)));
        }
    }

    /// A worker is done with its part of a batch.
    pub(crate) fn batch_done(&mut self, number: u64) {
        let Some(batch) = self.batches.get_mut(&number) else { return };
        batch.open -= 1;
        if batch.open == 0 {
            let Batch { client, weight, .. } =
                self.batches.remove(&number).expect("it was there a line ago");
            self.give_back(client, weight);
        }
    }

    /// Plans one command of a client. Gives a question to all workers, if it asks one.
    fn plan(
        &mut self,
        now: Duration,
        peer: PeerId,
        command: Command,
    ) -> Result<Option<Command>, String> {
        let session = self.sessions.get_mut(&peer).expect("checked by the caller");
        let tensors = &mut session.tensors;
        match command {
            Command::Run(instruction) => {
                self.planner.instruction(tensors, &mut self.streams, instruction)?;
            }
            Command::Create { output, content, signal } => {
                let block = match &content {
                    Content::Shared { block, .. } => Some(block.token),
                    Content::Data(_) => None,
                };
                let streams = &mut self.streams;
                let worker = self.planner.create(tensors, streams, output, content, signal)?;
                let worker = worker.and_then(|worker| self.pool.get_by_id(worker));
                match (block, worker) {
                    (Some(token), Some(worker)) => {
                        self.blocks.insert(token, (peer, worker.peer));
                    }
                    (Some(token), None) => self.outbox.push((peer, Message::Release { token })),
                    (None, _) => {}
                }
            }
            Command::Free(id) => self.planner.free(tensors, &mut self.streams, id),
            Command::Fetch { request, tensor, line, .. } => {
                self.fetch(now, peer, request, tensor, line);
            }
            Command::Signal { number, name, shard } => {
                tensors.signals.insert(number, Scope::new(name, shard));
                tensors.signals_version += 1;
            }
            Command::Stats { request } => return Ok(self.open_survey(peer, request)),
            Command::Strict { limit } => tensors.strict = limit,
            Command::Explain { request, begin } => {
                let explanation = if begin {
                    self.planner.begin_explaining(tensors);
                    Explanation::default()
                } else {
                    self.planner.end_explaining(tensors)
                };
                self.outbox.push((peer, Message::Explained { request, explanation }));
            }
            Command::Locate { request, tensor } => {
                let there = tensors.get(tensor);
                let result = there.map(|there| self.planner.locate(there));
                let result = result.map_err(|failure| (*failure).clone());
                self.outbox.push((peer, Message::Located { request, result }));
            }
            Command::Define(definition) => {
                session.templates.define(&definition).map_err(|error| error.to_string())?;
                session.passes.forget(definition.number);
            }
            Command::Invoke(invocation) => self.plan_pass(peer, &invocation)?,
            Command::EndSession { .. }
            | Command::Describe { .. }
            | Command::Exchange(_)
            | Command::Script(_)
            | Command::Play(_)
            | Command::Status { .. } => {
                return Err(FORBIDDEN.into());
            }
        }
        Ok(None)
    }

    /// Plans a pass of a template: as it was planned before, if it begins like that time, and else
    /// instruction by instruction.
    fn plan_pass(&mut self, peer: PeerId, invocation: &Invocation) -> Result<(), String> {
        let session = self.sessions.get_mut(&peer).expect("checked by the caller");
        let known = session.templates.take(invocation).map_err(|error| error.to_string())?;
        if let Some(last) = invocation.last.checked_sub(1) {
            let last = invocation.base.0.saturating_add(u64::from(last));
            session.tensors.qualify_new(TensorId(last))?;
        }
        let unfolded = &mut self.unfolded;
        let mut note = |worker, commands| unfolded.push_back((worker, commands));
        let note: Option<&mut dyn FnMut(WorkerId, Vec<Command>)> =
            if self.log.is_some() { Some(&mut note) } else { None };
        let (tensors, passes) = (&mut session.tensors, &mut session.passes);
        let beginning = self.planner.play(passes, tensors, &mut self.streams, &known, note);
        let Err(beginning) = beginning else { return Ok(()) };
        // What this pass makes of the streams is kept apart, to be noted.
        let others = std::mem::take(&mut self.streams);
        let commands = expand(known.template, known.bindings, known.pass);
        let mut planned = Ok(());
        for command in commands {
            planned = planned.and_then(|()| match command {
                Command::Run(instruction) => {
                    self.planner.instruction(tensors, &mut self.streams, instruction)
                }
                Command::Free(id) => {
                    self.planner.free(tensors, &mut self.streams, id);
                    Ok(())
                }
                _ => unreachable!("a pass is of instructions and frees"),
            });
        }
        let lists = std::mem::replace(&mut self.streams, others).take();
        planned?;
        if let Some(beginning) = beginning {
            self.planner.note_pass(passes, tensors, &known, beginning, &lists);
        }
        for (worker, commands) in lists {
            commands.into_iter().for_each(|command| self.streams.push(worker, command));
        }
        Ok(())
    }

    fn fetch(
        &mut self,
        now: Duration,
        peer: PeerId,
        request: RequestId,
        tensor: TensorId,
        line: SourceId,
    ) {
        let session = self.sessions.get_mut(&peer).expect("checked by the caller");
        let failure = match session.tensors.get(tensor) {
            Ok(_) => {
                let (pool, requests) = (&mut self.pool, &mut self.requests);
                let mine = RequestId(self.next_request);
                self.next_request += 1;
                let (tensors, machine) = (&mut session.tensors, &session.machine);
                let fetch = |worker, name| {
                    let holder = pool.get_by_id(worker).expect("handles are on living workers");
                    let shared = !holder.machine.is_empty() && holder.machine == *machine;
                    let (client, original, worker) = (peer, request, holder.peer);
                    let open = Request { client, original, worker, tensor, since: now };
                    requests.insert(mine, open);
                    Command::Fetch { request: mine, tensor: name, shared, line }
                };
                return self.planner.with_whole(tensors, &mut self.streams, tensor, line, fetch);
            }
            Err(failure) => (*failure).clone(),
        };
        self.outbox.push((peer, Message::Value { request, result: Err(failure) }));
    }

    /// Begins to ask all workers for statistics; gives the question.
    fn open_survey(&mut self, peer: PeerId, original: RequestId) -> Option<Command> {
        let request = RequestId(self.next_request);
        self.next_request += 1;
        let open: BTreeSet<PeerId> = self.pool.iter().map(|worker| worker.peer).collect();
        if open.is_empty() {
            let answer = Message::Statistics { request: original, workers: Vec::new() };
            self.outbox.push((peer, answer));
            return None;
        }
        let survey = Survey { client: peer, original, open, workers: Vec::new() };
        self.surveys.insert(request, survey);
        Some(Command::Stats { request })
    }

    /// Sends every worker a command of the dispatcher's own.
    pub(crate) fn tell_workers(&mut self, now: Duration, command: &Command) {
        let peers: Vec<PeerId> = self.pool.iter().map(|worker| worker.peer).collect();
        peers.into_iter().for_each(|peer| self.tell_worker(now, peer, command.clone()));
    }

    /// Sends one worker a command of the dispatcher's own.
    pub(crate) fn tell_worker(&mut self, now: Duration, peer: PeerId, command: Command) {
        if let Some(worker) = self.pool.get_mut(peer) {
            worker.owe(now, 0, command.weight());
            self.outbox.push((peer, Message::Stream(vec![command])));
        }
    }
}

/// Gives the tensors of an invocation the names that workers know them by; and what it stands for,
/// if that is asked for.
fn qualify_invocation(
    invocation: &mut Invocation,
    tensors: &mut Tensors,
    templates: &mut Templates,
    unfolds: bool,
) -> Result<Option<Vec<Command>>, String> {
    let unfolded = if unfolds {
        templates.expand(invocation).map(Some)
    } else {
        templates.take(invocation).map(|_| None)
    };
    let unfolded = unfolded.map_err(|error| error.to_string())?;
    if let Some(count) = invocation.last.checked_sub(1) {
        tensors.qualify_new(TensorId(invocation.base.0.saturating_add(u64::from(count))))?;
    }
    invocation.base = tensors.qualify_new(invocation.base)?;
    let name = |id: &mut TensorId| *id = tensors.qualify(*id).unwrap_or(NOTHING);
    invocation.tensors.iter_mut().map(|(_, id)| id).for_each(name);
    invocation.others.iter_mut().for_each(name);
    Ok(unfolded)
}
