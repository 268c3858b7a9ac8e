//! The runtime of an embedded session: its cores, and the routing of messages between them.
//!
//! Lock order: a worker's core, the dispatcher, the session's stream, then one of the locks that
//! are held briefly (inboxes, answers, waiters, watchers, the list of threads). Cores and the
//! dispatcher are locked with `try_lock` only, except in `close` and after a fork.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use gt_client::driver::Outbox;
use gt_dispatcher::{Dispatcher, FromPeer, Limits, PeerId, ToPeer};
use gt_ir::event::EmitLevel;
use gt_ir::message::{
    ClientHello, ClientToServer, Goodbye, Hello, Role, ServerToClient, ServerToWorker, WorkerHello,
    WorkerToWorker,
};
use gt_ir::modifier::Modifier;
use gt_ir::{ClientCommand, SessionOrigin, TensorData, TensorId, WorkerId};
use gt_worker::{Out, Work, WorkerInput};

use super::client::ClientEnd;
use super::filing::Filing;
use super::forks::{ForkGuard, Gate, InFlightCall};
use super::handover::Mailbox;
use super::threads::{ThreadState, WorkerThreads};
use super::watching::{ANSWER_LIMIT, Watching};
use crate::drivers::MakeWorker;
use crate::drivers::files::{FileDone, FileKey};
use crate::drivers::log::log_from_environment;
use crate::drivers::sharding::shard_from_environment;

/// The session's link.
const CLIENT: PeerId = PeerId::client(1);

pub struct Runtime {
    started: Instant,
    dispatcher: Mailbox<Dispatcher, (PeerId, FromPeer)>,
    workers: Vec<WorkerEnd>,
    pub client: ClientEnd,
    pub threads: WorkerThreads,
    forks: ForkGuard,
    watching: Watching,
    filing: Filing,
    /// Whether values may be read without a request.
    reads: bool,
}

/// A worker's core, its inbox and its thread.
struct WorkerEnd {
    core: Mailbox<Core, WorkerInput>,
    /// Whether the core has work besides its inbox.
    has_more: AtomicBool,
    thread: ThreadState,
}

struct Core {
    work: Box<dyn Work>,
    /// What it emits.
    level: EmitLevel,
    out: Vec<Out>,
}

impl Runtime {
    pub fn new(
        workers: usize,
        make: MakeWorker,
        modifiers: Vec<Box<dyn Modifier>>,
        origin: SessionOrigin,
    ) -> Arc<Runtime> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = (cores / workers).max(1);
        let started = Instant::now();
        let log = log_from_environment();
        // A log has each value that is read.
        let mut reads = log.is_none();
        let mut dispatcher = Dispatcher::new(String::new(), Limits::default(), log);
        shard_from_environment(&mut dispatcher);
        modifiers.into_iter().for_each(|modifier| dispatcher.pipeline().push(modifier));
        dispatcher.set_clock(Box::new(move || started.elapsed()));
        let mut ends = Vec::new();
        for number in 0..workers {
            let name = format!("auto_worker_{number}");
            let work = make(name.clone(), threads);
            reads &= work.can_read();
            // Workers in one process move tensors by handing them over.
            let hello = WorkerHello { rate: work.rate(), ..WorkerHello::new(name) };
            dispatcher.handle(Duration::ZERO, worker_peer(number), Hello::Worker(hello));
            ends.push(WorkerEnd {
                core: Mailbox::new(Core { work, level: EmitLevel::Nothing, out: Vec::new() }),
                has_more: AtomicBool::new(false),
                thread: ThreadState::default(),
            });
        }
        dispatcher.handle(Duration::ZERO, CLIENT, Hello::Client(ClientHello::new(origin)));
        let mut out = Vec::new();
        dispatcher.take_outbox(&mut out);
        let runtime = Arc::new(Runtime {
            started,
            dispatcher: Mailbox::new(dispatcher),
            workers: ends,
            client: ClientEnd::default(),
            threads: WorkerThreads::new(workers),
            forks: ForkGuard::default(),
            watching: Watching::default(),
            filing: Filing::default(),
            reads,
        });
        // With a log, `Observe` messages are already in the outbox.
        out.into_iter().for_each(|(peer, message)| runtime.route(peer, message));
        runtime.filing.attach(&runtime);
        super::fork::watch(&runtime);
        runtime
    }

    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    pub fn thread(&self, index: usize) -> &ThreadState {
        &self.workers[index].thread
    }

    pub fn attach(&self, outbox: Weak<dyn Outbox>) {
        self.client.attach(outbox);
    }

    /// Begins a call of a user thread: see [`super::forks`].
    pub fn enter(&self) -> InFlightCall<'_> {
        self.forks.enter()
    }

    /// Begins a short call that computes nothing, also with Python's lock held.
    pub fn enter_briefly(&self) -> InFlightCall<'_> {
        self.forks.enter_briefly()
    }

    /// As [`Runtime::enter`], for a thread that has Python's lock.
    pub fn try_enter(&self) -> Option<InFlightCall<'_>> {
        self.forks.try_enter()
    }

    /// Takes commands of the session.
    pub fn submit(self: &Arc<Runtime>, batch: &mut Vec<ClientCommand>, work: u64) {
        let _call = self.forks.enter_briefly();
        self.watching.open(self);
        let weight: u64 = batch.iter().map(ClientCommand::weight).sum();
        self.client.ahead.submitted(weight, work);
        self.threads.submitted_here();
        // The batch is copied so that the session keeps writing to memory in its own core's cache:
        // single stores to cache lines that another core has read would cost more than this copy.
        let mut sent = Vec::with_capacity(batch.len());
        sent.append(batch);
        let issued = self.client.issues.is_on().then(|| {
            let events = vec![self.client.issues.end(self.started.elapsed(), weight)];
            (CLIENT, ClientToServer::Events { events, dropped: 0 }.into())
        });
        let stream = (CLIENT, ClientToServer::Stream(sent).into());
        self.dispatcher.put_all(issued.into_iter().chain([stream]));
    }

    /// Leaves a message of the session's client to the next thread that runs the dispatcher.
    pub fn leave(&self, message: ClientToServer) {
        let _call = self.forks.enter_briefly();
        self.dispatcher.put_all([(CLIENT, message.into())]);
    }

    /// Returns whether values can be read without a request: no watcher or log needs to see it.
    pub fn can_read(&self) -> bool {
        self.reads && self.watching.level() == EmitLevel::Nothing && !self.threads.is_closing()
    }

    /// The value of a tensor that is computed, unless another thread is at work.
    pub fn read(&self, tensor: TensorId) -> Option<TensorData> {
        let place = self.dispatcher.try_state(|dispatcher| dispatcher.replica_of(CLIENT, tensor));
        let (peer, lane, name) = place.flatten()?;
        let worker = &self.workers[peer.number as usize];
        worker.core.try_state(|core| core.work.read(lane, name)).flatten()
    }

    /// Unparks a thread to work on submitted commands; starts the threads the first time.
    pub fn wake(self: &Arc<Runtime>) {
        let _call = self.forks.enter_briefly();
        self.threads.start(self);
        self.workers[0].thread.unpark();
    }

    /// Called when the session buffers a first command: a deeply parked thread would not flush it.
    pub fn nudge(&self) {
        let _call = self.forks.enter_briefly();
        if self.client.issues.is_on() {
            self.client.issues.begin(self.started.elapsed());
        }
        self.workers[0].thread.unpark_if_deep();
    }

    /// Whether there is work for a worker's thread.
    pub fn has_work(&self, index: usize) -> bool {
        let worker = &self.workers[index];
        !self.dispatcher.is_empty()
            || !worker.core.is_empty()
            || worker.has_more.load(Ordering::SeqCst)
    }

    /// Whether there is work for any.
    pub fn has_any_work(&self) -> bool {
        (0..self.workers.len()).any(|index| self.has_work(index))
    }

    /// Runs messages through the dispatcher, unless another thread is at work there. Returns
    /// whether there were any.
    pub fn dispatch(&self) -> bool {
        self.dispatcher.work(|dispatcher, messages| {
            let now = self.started.elapsed();
            for (peer, message) in messages {
                dispatcher.handle(now, peer, message);
            }
            self.route_all(dispatcher);
        })
    }

    /// Passes on what the dispatcher sends, under its lock, so that messages keep their order.
    fn route_all(&self, dispatcher: &mut Dispatcher) {
        let mut out = Vec::new();
        dispatcher.take_outbox(&mut out);
        out.into_iter().for_each(|(peer, message)| self.route(peer, message));
    }

    /// Lets the dispatcher end waits that have taken too long, for threads that wait.
    pub fn tick(&self) {
        let now = self.started.elapsed();
        self.dispatcher.try_state(|dispatcher| {
            if dispatcher.next_deadline().is_some_and(|due| due <= now) {
                dispatcher.tick(now);
                self.route_all(dispatcher);
            }
        });
    }

    fn route(&self, peer: PeerId, message: ToPeer) {
        match message {
            ToPeer::Client(ServerToClient::Observe { level, .. }) => {
                self.client.issues.observe(level);
            }
            ToPeer::Worker(ServerToWorker::Observe { level, .. }) => self.watching.observe(level),
            ToPeer::Client(message) => {
                let answer = self.client.receive(message);
                answer.into_iter().for_each(|it| self.dispatcher.put((CLIENT, it.into())));
            }
            ToPeer::Worker(message) => self.tell_worker(peer.number as usize, message),
            it @ (ToPeer::Watcher(_) | ToPeer::Operator(_)) => self.watching.send(peer, it),
            message @ (ToPeer::Welcome(_) | ToPeer::Goodbye(_)) => match (peer.role, message) {
                (Role::Watcher, message) => self.watching.send(peer, message),
                (Role::Client, ToPeer::Goodbye(goodbye)) => self.client.end(goodbye),
                // The ends in this process need no welcome, and workers live as long as it.
                _ => {}
            },
        }
    }

    /// Puts what a worker handles into its inbox, and wakes its thread.
    fn tell_worker(&self, index: usize, input: impl Into<WorkerInput>) {
        self.workers[index].core.put(input.into());
        self.workers[index].thread.unpark();
    }

    /// Has a worker handle its messages and run a turn, unless another thread is at work there.
    /// Returns whether there was anything to do.
    pub fn step(&self, index: usize) -> bool {
        let worker = &self.workers[index];
        if self.threads.is_closing() {
            return false;
        }
        let worked = worker.core.try_work(|core, inputs| {
            self.tell_core(core);
            let mut worked = !inputs.is_empty();
            let Core { work, out, .. } = core;
            inputs.into_iter().for_each(|input| work.handle(input, out));
            let stepped = work.step(out);
            worker.has_more.store(stepped, Ordering::SeqCst);
            worked |= stepped;
            self.send(index, out);
            worked
        });
        let worked = worked.unwrap_or(false);
        if worked {
            self.dispatch();
        }
        worked
    }

    /// Runs a turn of each worker on this thread; returns whether there was anything to do.
    pub fn step_all(&self) -> bool {
        (0..self.workers.len()).fold(false, |worked, index| worked | self.step(index))
    }

    fn send(&self, index: usize, out: &mut Vec<Out>) {
        let from = worker_peer(index);
        for out in out.drain(..) {
            match out {
                Out::Server(message) => self.dispatcher.put((from, message.into())),
                // Worker ids are indices here.
                Out::Worker(to, piece) => {
                    let sender = WorkerId(index as u32);
                    self.tell_worker(to.0 as usize, WorkerToWorker::Piece { sender, piece });
                }
                Out::Backup(to, backup) => {
                    self.tell_worker(to.0 as usize, WorkerToWorker::Backup(backup));
                }
                Out::Files(job) => {
                    if let Some(done) = self.filing.begin(index, job) {
                        self.end_job(index, done);
                    }
                }
            }
        }
    }

    /// A job on files is done; called in its thread.
    pub fn filed(&self, index: usize, key: FileKey, done: Option<FileDone>) {
        let _call = self.forks.enter_briefly();
        self.filing.close(index, key);
        if let Some(done) = done {
            self.end_job(index, done);
            self.dispatch();
        }
    }

    fn end_job(&self, index: usize, done: FileDone) {
        match done {
            FileDone::Worker(result) => self.tell_worker(index, result),
            FileDone::Server(message) => {
                self.dispatcher.put((worker_peer(index), message.into()));
            }
        }
    }

    /// Sets what a core emits, if that has changed.
    fn tell_core(&self, core: &mut Core) {
        let level = self.watching.level();
        if core.level != level {
            core.level = level;
            core.work.observe(level, self.started.elapsed());
        }
    }

    /// Flushes the events of cores that no thread works on, and reports if a watcher asks.
    pub fn take_reports(&self, is_asked: bool) {
        if self.watching.level() == EmitLevel::Nothing {
            return;
        }
        for (index, worker) in self.workers.iter().enumerate() {
            // The state alone: messages are left in the inbox, and nothing is computed here.
            worker.core.try_state(|core| {
                self.tell_core(core);
                core.work.report(is_asked, &mut core.out);
                self.send(index, &mut core.out);
            });
        }
    }

    /// Adds a watcher in another process, and returns its link number.
    pub fn add_watcher(&self) -> PeerId {
        let _call = self.enter();
        self.watching.add()
    }

    /// Handles a watcher's message, and returns the answers.
    pub fn serve_watcher(&self, peer: PeerId, message: FromPeer) -> Vec<ToPeer> {
        let _call = self.enter();
        self.take_reports(true);
        self.dispatcher.put((peer, message));
        let until = Instant::now() + ANSWER_LIMIT;
        // Another thread may be running the dispatcher.
        while Instant::now() < until {
            self.dispatch();
            if let Some(sent) = self.watching.take(peer) {
                return sent;
            }
            thread::sleep(Duration::from_micros(100));
        }
        Vec::new()
    }

    /// Removes a watcher.
    pub fn remove_watcher(&self, peer: PeerId) {
        let _call = self.enter();
        self.watching.remove(peer);
        let goodbye = Goodbye { reason: "the watcher is gone".into() };
        self.dispatcher.put((peer, goodbye.into()));
        self.dispatch();
    }

    /// Stops and joins all threads.
    pub fn close(&self) {
        self.filing.finish();
        self.threads.close();
        self.watching.close();
        self.workers.iter().for_each(|worker| worker.thread.unpark());
        self.threads.join();
        self.filing.finish();
        let _call = self.enter();
        self.take_reports(true);
        self.dispatch();
        self.workers.iter().for_each(|worker| worker.core.clear());
        let now = self.started.elapsed();
        self.dispatcher.state().disconnect(now, CLIENT, "the session was closed");
    }

    fn gates(&self) -> impl Iterator<Item = &Gate> {
        self.workers.iter().map(|worker| &worker.thread.gate)
    }

    /// Stops all work in this runtime, until [`Runtime::release`].
    pub fn hold(&self) {
        self.forks.hold(self.gates());
    }

    /// The last phase before a fork: waits for short calls, too.
    pub fn settle(&self) {
        self.forks.settle();
    }

    /// Ends [`Runtime::hold`].
    pub fn release(&self) {
        self.forks.release(self.gates());
    }

    /// Resets the runtime in the child of a fork.
    pub fn after_fork(&self) {
        self.threads.after_fork();
        self.client.after_fork();
        for peer in self.watching.after_fork() {
            let reason = "the process has forked".into();
            self.dispatcher.put((peer, Goodbye { reason }.into()));
        }
        for worker in &self.workers {
            worker.thread.after_fork();
            worker.core.state().work.after_fork();
        }
        for (index, done) in self.filing.after_fork() {
            self.end_job(index, done);
        }
        self.forks.reset();
        self.release();
    }
}

fn worker_peer(index: usize) -> PeerId {
    PeerId::worker(index as u64)
}
