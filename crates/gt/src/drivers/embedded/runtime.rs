//! The cores of an embedded session, and the threads that drive them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use gt_client::driver::Outbox;
use gt_dispatcher::{Dispatcher, Limits, PeerId};
use gt_engine_native::processor;
use gt_ir::message::{Hello, Message, PROTOCOL_VERSION, Role, schema};
use gt_ir::modifier::Modifier;
use gt_ir::{Command, Piece, RequestId, WorkerId};
use gt_worker::{Out, Work};
use rustc_hash::FxHashMap;

use super::bell::Bell;
use super::endpoint::Endpoint;
use crate::drivers::MakeWorker;
use crate::drivers::issues::Issues;
use crate::drivers::log::log_from_environment;
use crate::drivers::sharding::shard_from_environment;

/// The session's link; workers have the numbers after it.
const CLIENT: PeerId = PeerId(1);

/// After work a worker's thread looks around this often before it sleeps,
const SPINS: u32 = 5000;
/// then sleeps this long at a time, to flush what the session holds back,
const SHORT_SLEEP: Duration = Duration::from_millis(1);
/// and after this many short sleeps without work until it is woken.
const SHORT_SLEEPS: u32 = 20;

/// How long a watcher's question may take to be answered.
const WATCHER_LIMIT: Duration = Duration::from_millis(500);

pub struct Runtime {
    started: Instant,
    /// Messages for the dispatcher.
    inbox: Mutex<Vec<(PeerId, Message)>>,
    dispatcher: Mutex<Dispatcher>,
    seats: Vec<Seat>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    has_threads: AtomicBool,
    closing: AtomicBool,
    session: Mutex<Option<Weak<dyn Outbox>>>,
    answers: Mutex<FxHashMap<RequestId, Message>>,
    /// Why the dispatcher has ended the session.
    refused: OnceLock<String>,
    /// Threads that wait for an answer or for room in the window.
    sleepers: Mutex<Vec<Thread>>,
    /// The user's threads that are at work here, and whether they are kept from it; see
    /// [`super::fork`].
    visitors: AtomicUsize,
    held: AtomicBool,
    /// By how many.
    holds: AtomicUsize,
    in_flight: AtomicU64,
    /// The estimated cost of what is submitted and not yet run.
    work: AtomicU64,
    /// The processor from which something was submitted last.
    issuer: AtomicI32,
    /// There are more processors than workers.
    roomy: bool,
    /// Whether clients and workers are to note events.
    is_observed: AtomicBool,
    issues: Issues,
    /// Watchers in other processes, and what was sent to each.
    watchers: Mutex<FxHashMap<PeerId, Vec<Message>>>,
    has_endpoint: AtomicBool,
    endpoint: Mutex<Option<Endpoint>>,
}

/// A worker's place: its queue, its core, and its thread's bell.
struct Seat {
    queue: Mutex<VecDeque<Vec<Command>>>,
    /// What other workers have sent.
    pieces: Mutex<VecDeque<Piece>>,
    core: Mutex<Core>,
    bell: Bell,
    /// Held by the seat's thread while it works; see [`super::fork`].
    gate: AtomicBool,
    /// Its thread sleeps until it is woken.
    deep: AtomicBool,
}

struct Core {
    work: Box<dyn Work>,
    /// Whether it was told to note events.
    is_observed: bool,
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Runtime {
    pub fn new(
        workers: usize,
        make: MakeWorker,
        modifiers: Vec<Box<dyn Modifier>>,
    ) -> Arc<Runtime> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = (cores / workers).max(1);
        let started = Instant::now();
        let mut dispatcher =
            Dispatcher::new(String::new(), Limits::default(), log_from_environment());
        shard_from_environment(&mut dispatcher);
        modifiers.into_iter().for_each(|modifier| dispatcher.pipeline().push(modifier));
        dispatcher.set_clock(Box::new(move || started.elapsed()));
        let hello = |role, name: String| {
            let (version, schema) = (PROTOCOL_VERSION, schema());
            // Workers in one process move tensors by handing them over.
            let (machine, endpoint, fabric) = (String::new(), String::new(), None);
            Message::Hello(Hello { version, schema, role, name, machine, endpoint, fabric })
        };
        let mut seats = Vec::new();
        for number in 0..workers {
            let name = format!("auto_worker_{number}");
            let peer = PeerId(CLIENT.0 + 1 + number as u64);
            dispatcher.handle(
                Duration::ZERO,
                peer,
                Role::Worker,
                hello(Role::Worker, name.clone()),
            );
            seats.push(Seat {
                queue: Mutex::default(),
                pieces: Mutex::default(),
                core: Mutex::new(Core { work: make(name, threads), is_observed: false }),
                bell: Bell::default(),
                gate: AtomicBool::new(false),
                deep: AtomicBool::new(false),
            });
        }
        let name = format!("{:x}", std::process::id());
        dispatcher.handle(Duration::ZERO, CLIENT, Role::Client, hello(Role::Client, name));
        let mut out = Vec::new();
        dispatcher.take_outbox(&mut out);
        // With a log events are noted from the beginning.
        let observe = |(_, message): &(PeerId, Message)| matches!(message, Message::Observe { .. });
        let is_observed = out.iter().any(observe);
        let issues = Issues::default();
        issues.observe(is_observed);
        let runtime = Arc::new(Runtime {
            started,
            inbox: Mutex::default(),
            dispatcher: Mutex::new(dispatcher),
            seats,
            threads: Mutex::default(),
            has_threads: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            session: Mutex::new(None),
            answers: Mutex::default(),
            refused: OnceLock::new(),
            sleepers: Mutex::default(),
            visitors: AtomicUsize::new(0),
            held: AtomicBool::new(false),
            holds: AtomicUsize::new(0),
            in_flight: AtomicU64::new(0),
            work: AtomicU64::new(0),
            issuer: AtomicI32::new(-1),
            roomy: workers < cores,
            is_observed: AtomicBool::new(is_observed),
            issues,
            watchers: Mutex::default(),
            has_endpoint: AtomicBool::new(false),
            endpoint: Mutex::new(None),
        });
        super::fork::watch(&runtime);
        runtime
    }

    pub fn workers(&self) -> usize {
        self.seats.len()
    }

    pub fn attach(&self, outbox: Weak<dyn Outbox>) {
        *lock(&self.session) = Some(outbox);
    }

    /// Why the dispatcher has ended the session, if it has.
    pub fn refused(&self) -> Option<&str> {
        self.refused.get().map(String::as_str)
    }

    /// Takes commands of the session.
    pub fn submit(self: &Arc<Runtime>, batch: &mut Vec<Command>, work: u64) {
        if !self.has_endpoint.load(Ordering::Relaxed) {
            self.open_endpoint();
        }
        let weight: u64 = batch.iter().map(Command::weight).sum();
        self.in_flight.fetch_add(weight, Ordering::Relaxed);
        self.work.fetch_add(work, Ordering::Relaxed);
        self.issuer.store(processor::current(), Ordering::Relaxed);
        // The session writes where only its own processor has written: one by one, stores into
        // memory that another has read cost more than this copy of all at once.
        let mut sent = Vec::with_capacity(batch.len());
        sent.append(batch);
        let mut inbox = lock(&self.inbox);
        if self.issues.is_on() {
            let events = vec![self.issues.end(self.started.elapsed(), weight)];
            inbox.push((CLIENT, Message::Events { events, dropped: 0 }));
        }
        inbox.push((CLIENT, Message::Stream(sent)));
    }

    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// The estimated cost of what is submitted and not yet run.
    pub fn work(&self) -> u64 {
        self.work.load(Ordering::Relaxed)
    }

    /// Lets the threads work on what is submitted; starts them the first time.
    pub fn wake(self: &Arc<Runtime>) {
        if !self.has_threads.load(Ordering::Acquire) {
            self.start_threads();
        }
        self.seats[0].bell.ring();
    }

    /// A first command waits in the session: a thread that sleeps deeply would not notice.
    pub fn nudge(&self) {
        if self.issues.is_on() {
            self.issues.begin(self.started.elapsed());
        }
        if self.seats[0].deep.load(Ordering::SeqCst) {
            self.seats[0].bell.ring();
        }
    }

    /// Lets watchers in; with the first work.
    fn open_endpoint(self: &Arc<Runtime>) {
        if !self.has_endpoint.swap(true, Ordering::SeqCst) && !self.is_closed() {
            *lock(&self.endpoint) = Endpoint::open(self);
        }
    }

    fn start_threads(self: &Arc<Runtime>) {
        let mut threads = lock(&self.threads);
        if self.has_threads.load(Ordering::Acquire) || self.closing.load(Ordering::Acquire) {
            return;
        }
        for index in 0..self.seats.len() {
            let runtime = Arc::clone(self);
            let thread = thread::Builder::new()
                .name(format!("gt-worker-{index}"))
                .spawn(move || runtime.drive(index));
            match thread {
                Ok(thread) => threads.push(thread),
                // Whoever waits for a value drives the cores itself then.
                Err(_) => break,
            }
        }
        self.has_threads.store(!threads.is_empty(), Ordering::Release);
    }

    /// The life of a seat's thread.
    fn drive(&self, index: usize) {
        let seat = &self.seats[index];
        let (mut spins, mut sleeps) = (0, 0);
        while !self.closing.load(Ordering::Acquire) {
            while seat.gate.swap(true, Ordering::Acquire) {
                thread::sleep(Duration::from_micros(50));
            }
            // After short sleeps it takes what the session holds back, too.
            if index == 0 && sleeps > 0 {
                self.flush_session();
                self.take_reports();
            }
            let worked = self.pump() | self.run(index);
            seat.gate.store(false, Ordering::Release);
            if worked {
                (spins, sleeps) = (0, 0);
            } else if spins < SPINS {
                spins += 1;
                // The thread with the work may need this very processor.
                if spins % 64 == 0 {
                    self.leave_issuer();
                    thread::yield_now();
                } else {
                    std::hint::spin_loop();
                }
            } else if self.has_work(index) {
                // Another thread is at it.
                thread::yield_now();
            } else {
                sleeps += 1;
                let deep = sleeps > SHORT_SLEEPS;
                seat.deep.store(deep, Ordering::SeqCst);
                let limit = if deep { Duration::from_secs(3600) } else { SHORT_SLEEP };
                seat.bell.sleep(limit, || {
                    self.has_work(index)
                        || self.closing.load(Ordering::Acquire)
                        || (deep && self.session_waits())
                });
                if deep {
                    seat.deep.store(false, Ordering::SeqCst);
                    sleeps = 1;
                }
                self.leave_issuer();
            }
        }
    }

    /// Moves this thread away from the processor on which the user's thread works, if there is one
    /// for each.
    fn leave_issuer(&self) {
        if self.roomy && processor::current() == self.issuer.load(Ordering::Relaxed) {
            processor::step_aside();
        }
    }

    fn has_work(&self, index: usize) -> bool {
        let seat = &self.seats[index];
        !lock(&self.inbox).is_empty()
            || !lock(&seat.queue).is_empty()
            || !lock(&seat.pieces).is_empty()
    }

    fn session_waits(&self) -> bool {
        let session = lock(&self.session).as_ref().and_then(Weak::upgrade);
        session.is_some_and(|session| session.has_waiting())
    }

    fn flush_session(&self) {
        let session = lock(&self.session).as_ref().and_then(Weak::upgrade);
        if let Some(session) = session {
            session.flush(self.started.elapsed());
        }
    }

    /// Passes messages through the dispatcher, unless another thread is at it. Whether there
    /// were any.
    pub fn pump(&self) -> bool {
        let mut worked = false;
        loop {
            if lock(&self.inbox).is_empty() {
                return worked;
            }
            // Whoever holds the lock looks at the inbox again after letting go of it.
            let Ok(mut dispatcher) = self.dispatcher.try_lock() else { return worked };
            let messages = std::mem::take(&mut *lock(&self.inbox));
            let now = self.started.elapsed();
            for (peer, message) in messages {
                let workers = CLIENT.0 + self.seats.len() as u64;
                let role = match peer {
                    CLIENT => Role::Client,
                    peer if peer.0 <= workers => Role::Worker,
                    _ => Role::Watcher,
                };
                dispatcher.handle(now, peer, role, message);
            }
            let mut out = Vec::new();
            dispatcher.take_outbox(&mut out);
            // Routed under the lock: two threads must not overtake each other.
            out.into_iter().for_each(|(peer, message)| self.route(peer, message));
            worked = true;
        }
    }

    fn route(&self, peer: PeerId, message: Message) {
        if let Message::Observe { on, .. } = message {
            if self.is_observed.swap(on, Ordering::Relaxed) != on {
                self.issues.observe(on);
            }
            return;
        }
        if peer.0 > CLIENT.0 + self.seats.len() as u64 {
            if let Some(sent) = lock(&self.watchers).get_mut(&peer) {
                sent.push(message);
            }
            return;
        }
        if peer != CLIENT {
            // Embedded workers do not get lost.
            if let Message::Stream(batch) = message {
                let seat = &self.seats[(peer.0 - CLIENT.0 - 1) as usize];
                lock(&seat.queue).push_back(batch);
                seat.bell.ring();
            }
            return;
        }
        match message {
            Message::Done(weight) => {
                let before = self.in_flight.fetch_sub(weight, Ordering::Relaxed);
                if before > super::driver::WINDOW {
                    self.wake_sleepers();
                }
            }
            Message::Value { request, .. }
            | Message::Statistics { request, .. }
            | Message::Status { request, .. }
            | Message::Explained { request, .. }
            | Message::Located { request, .. } => {
                lock(&self.answers).insert(request, message);
                self.wake_sleepers();
            }
            Message::Goodbye { reason } => {
                let _ = self.refused.set(reason);
                self.wake_sleepers();
            }
            _ => {}
        }
    }

    /// Runs what waits for a worker, unless another thread is at it. Whether there was any.
    pub fn run(&self, index: usize) -> bool {
        let seat = &self.seats[index];
        let Ok(mut core) = seat.core.try_lock() else { return false };
        self.tell_core(&mut core);
        let mut out = Vec::new();
        let mut worked = false;
        let peer = PeerId(CLIENT.0 + 1 + index as u64);
        while !self.is_closed() {
            if let Some(piece) = { lock(&seat.pieces).pop_front() } {
                core.work.receive(piece, &mut out);
            } else if let Some(mut batch) = { lock(&seat.queue).pop_front() } {
                core.work.handle(&mut batch, &mut out);
            } else {
                break;
            }
            worked = true;
            self.send(peer, &mut out);
            self.pump();
        }
        if worked && self.in_flight() == 0 {
            self.work.store(0, Ordering::Relaxed);
        }
        worked
    }

    fn send(&self, from: PeerId, out: &mut Vec<Out>) {
        for out in out.drain(..) {
            match out {
                Out::Dispatcher(message) => lock(&self.inbox).push((from, message)),
                Out::Worker(to, piece) => self.pass(to, piece),
            }
        }
    }

    /// Tells a core whether to note events, where that has changed.
    fn tell_core(&self, core: &mut Core) {
        let is_observed = self.is_observed.load(Ordering::Relaxed);
        if core.is_observed != is_observed {
            core.is_observed = is_observed;
            core.work.observe(is_observed, self.started.elapsed());
        }
    }

    /// Takes what cores have noted that are not at work.
    fn take_reports(&self) {
        if !self.is_observed.load(Ordering::Relaxed) {
            return;
        }
        for (index, seat) in self.seats.iter().enumerate() {
            let Ok(mut core) = seat.core.try_lock() else { continue };
            self.tell_core(&mut core);
            let mut out = Vec::new();
            core.work.report(&mut out);
            self.send(PeerId(CLIENT.0 + 1 + index as u64), &mut out);
        }
    }

    /// A watcher in another process has come: gives its number.
    pub(super) fn add_watcher(&self) -> PeerId {
        let _visit = self.visit();
        let mut watchers = lock(&self.watchers);
        let first = CLIENT.0 + self.seats.len() as u64 + 1;
        let number = (first..).map(PeerId).find(|peer| !watchers.contains_key(peer));
        let peer = number.expect("there are fewer than 2^64 watchers");
        watchers.insert(peer, Vec::new());
        peer
    }

    /// Takes a watcher's message; gives what it is to be sent.
    pub(super) fn serve_watcher(&self, peer: PeerId, message: Message) -> Vec<Message> {
        let _visit = self.visit();
        self.take_reports();
        lock(&self.inbox).push((peer, message));
        let until = Instant::now() + WATCHER_LIMIT;
        // Another thread may be at it.
        while Instant::now() < until {
            self.pump();
            if let Some(sent) = lock(&self.watchers).get_mut(&peer)
                && sent.last().is_some_and(|last| !matches!(last, Message::Names(_)))
            {
                return std::mem::take(sent);
            }
            thread::sleep(Duration::from_micros(100));
        }
        Vec::new()
    }

    /// A watcher has gone.
    pub(super) fn remove_watcher(&self, peer: PeerId) {
        let _visit = self.visit();
        lock(&self.watchers).remove(&peer);
        let goodbye = Message::Goodbye { reason: "the watcher is gone".into() };
        lock(&self.inbox).push((peer, goodbye));
        self.pump();
    }

    /// Gives a piece to another worker. Their ids are their places here.
    fn pass(&self, to: WorkerId, piece: Piece) {
        let seat = &self.seats[to.0 as usize];
        lock(&seat.pieces).push_back(piece);
        seat.bell.ring();
    }

    /// Passes messages through the dispatcher on this thread. Whether there were any.
    pub fn pass_messages(&self) -> bool {
        let _visit = self.visit();
        self.pump()
    }

    /// Drives all cores on this thread until nothing is left to do.
    pub fn drive_here(&self) -> bool {
        let _visit = self.visit();
        let mut worked = self.pump();
        for index in 0..self.seats.len() {
            worked |= self.run(index);
        }
        worked
    }

    pub fn take_answer(&self, request: RequestId) -> Option<Message> {
        let _visit = self.visit();
        lock(&self.answers).remove(&request)
    }

    /// Has this thread woken when something arrives, until the result is dropped.
    pub fn await_arrivals(&self) -> Awaiting<'_> {
        let _visit = self.visit();
        lock(&self.sleepers).push(thread::current());
        Awaiting { runtime: self }
    }

    fn wake_sleepers(&self) {
        lock(&self.sleepers).iter().for_each(Thread::unpark);
    }

    /// Announces one of the user's threads, which may be waiting without Python's lock. As long
    /// as a fork is under way it waits.
    fn visit(&self) -> Visit<'_> {
        loop {
            self.visitors.fetch_add(1, Ordering::SeqCst);
            if !self.held.load(Ordering::SeqCst) {
                return Visit { runtime: self };
            }
            self.visitors.fetch_sub(1, Ordering::SeqCst);
            thread::sleep(Duration::from_micros(50));
        }
    }

    /// Stops and joins all threads.
    pub fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
        drop(lock(&self.endpoint).take());
        self.seats.iter().for_each(|seat| seat.bell.ring());
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            // The last reference may go on one of the threads themselves.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
        self.take_reports();
        self.pump();
        for seat in &self.seats {
            lock(&seat.queue).clear();
            lock(&seat.pieces).clear();
        }
        lock(&self.dispatcher).disconnect(self.started.elapsed(), CLIENT, "the session was closed");
    }

    pub fn is_closed(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Waits until no thread of the runtime is at work, and keeps them from it.
    pub(super) fn hold(&self) {
        if self.holds.fetch_add(1, Ordering::SeqCst) > 0 {
            return;
        }
        self.held.store(true, Ordering::SeqCst);
        while self.visitors.load(Ordering::SeqCst) > 0 {
            thread::sleep(Duration::from_micros(50));
        }
        for seat in &self.seats {
            while seat.gate.swap(true, Ordering::Acquire) {
                thread::sleep(Duration::from_micros(50));
            }
        }
    }

    /// Lets the threads work again.
    pub(super) fn release(&self) {
        if self.holds.fetch_sub(1, Ordering::SeqCst) > 1 {
            return;
        }
        self.held.store(false, Ordering::SeqCst);
        self.seats.iter().for_each(|seat| seat.gate.store(false, Ordering::Release));
    }

    /// In the child of a fork: the threads are gone, and come anew when they are needed.
    pub(super) fn after_fork(&self) {
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            std::mem::forget(thread);
        }
        self.has_threads.store(false, Ordering::Release);
        lock(&self.sleepers).clear();
        // Nobody who lives here is a visitor, and watchers are the parent's.
        self.visitors.store(0, Ordering::SeqCst);
        for peer in std::mem::take(&mut *lock(&self.watchers)).into_keys() {
            let reason = "the process has forked".into();
            lock(&self.inbox).push((peer, Message::Goodbye { reason }));
        }
        if let Some(endpoint) = lock(&self.endpoint).take() {
            endpoint.forget();
        }
        self.has_endpoint.store(false, Ordering::SeqCst);
        for seat in &self.seats {
            seat.bell.reset();
            seat.deep.store(false, Ordering::SeqCst);
            lock(&seat.core).work.after_fork();
        }
        self.holds.store(1, Ordering::SeqCst);
        self.release();
    }
}

/// As long as this lives, a fork waits.
struct Visit<'a> {
    runtime: &'a Runtime,
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.runtime.visitors.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A thread that is woken when something arrives.
pub struct Awaiting<'a> {
    runtime: &'a Runtime,
}

impl Awaiting<'_> {
    /// Sleeps until something arrives, `limit` at most. Holds no lock: a fork may happen.
    pub fn sleep(&self, limit: Duration) {
        thread::park_timeout(limit);
    }
}

impl Drop for Awaiting<'_> {
    fn drop(&mut self) {
        let _visit = self.runtime.visit();
        let mut sleepers = lock(&self.runtime.sleepers);
        let me = thread::current().id();
        if let Some(index) = sleepers.iter().position(|sleeper| sleeper.id() == me) {
            sleepers.swap_remove(index);
        }
    }
}
