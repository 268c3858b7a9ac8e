//! The network driver: a session on a server.
//!
//! [`open`]: connecting and attaching; [`incoming`]: handling the server's messages.

mod incoming;
mod open;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gt_client::driver::{Batches, Driver, HeldLister, Interrupt, Outbox};
use gt_client::{ClientError, Result};
use gt_ir::event::Event;
use gt_ir::message::{Answer, ClientToServer};
use gt_ir::status::inspection::HeldTensors;
use gt_ir::{ClientCommand, RequestId, StreamNumbers};
use gt_net::wake::Wake;

use super::blocks::SharedBlocks;
use super::fork;
use super::resume::ClientLink;
use crate::drivers::answers::SessionAnswers;
use crate::drivers::issues::Issues;
use crate::drivers::run_ahead::{LongWait, RunAhead};
use crate::drivers::undone::UndoneSteps;

pub use open::{attach, connect, connect_as, driver, new_token};

/// The interval at which a wait checks for the user's interrupt.
const SLICE: Duration = Duration::from_millis(50);
/// The interval at which the session's buffer is flushed while it is in use.
const FLUSH_EVERY: Duration = Duration::from_millis(1);
/// The number of idle rounds after which the flusher sleeps until it is woken.
const IDLE_ROUNDS: u32 = 20;

/// How long a session that is detached waits for workers that read data in this process's memory.
const SETTLE_LIMIT: Duration = Duration::from_secs(60);

/// Events are sent when this many are waiting ...
const EVENTS: usize = 64;
/// ... or when the oldest has waited this long.
const EVENTS_EVERY: Duration = Duration::from_millis(50);

struct NetworkDriver {
    shared: Arc<ClientShared>,
}

struct ClientShared {
    state: Mutex<ClientState>,
    address: String,
    /// The name under which the server shows the session.
    name: String,
    data_roots: Vec<String>,
    numbers: StreamNumbers,
    /// The number of threads that wait for the state while another holds it and waits on the
    /// socket.
    contenders: AtomicUsize,
    wake: Wake,
    ahead: RunAhead,
    session: Mutex<Option<Weak<dyn Outbox>>>,
    closing: AtomicBool,
    idle: AtomicBool,
    flusher: Mutex<Option<JoinHandle<()>>>,
    /// The process that connected; its forks must not use the socket.
    process: u32,
    started: Instant,
    issues: Issues,
    undone: UndoneSteps,
    /// How the program lists the tensors that it holds.
    lister: OnceLock<HeldLister>,
}

struct ClientState {
    link: ClientLink,
    answers: SessionAnswers,
    blocks: SharedBlocks,
    shares_memory: bool,
    /// Why the session has ended, if it has.
    ended: Option<String>,
    /// Unsent events.
    events: Vec<Event>,
    /// When the oldest of them was emitted.
    events_since: Duration,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl ClientShared {
    /// Locks the state; a thread that holds it while waiting on the socket is woken to release it.
    fn state(&self) -> MutexGuard<'_, ClientState> {
        if let Ok(state) = self.state.try_lock() {
            return state;
        }
        self.contenders.fetch_add(1, Ordering::SeqCst);
        self.wake.ring();
        let state = lock(&self.state);
        self.contenders.fetch_sub(1, Ordering::SeqCst);
        state
    }

    fn send(&self, state: &mut ClientState, message: &ClientToServer) {
        if state.ended.is_none()
            && let Err(error) = state.link.send(message)
        {
            state.ended = Some(error.to_string());
        }
    }

    /// Emits the event of a batch that was sent.
    fn emit_issue(&self, state: &mut ClientState, weight: u64) {
        let now = self.started.elapsed();
        if state.events.is_empty() {
            state.events_since = now;
        }
        state.events.push(self.issues.end(now, weight));
        self.send_events(state, false);
    }

    /// Sends the events if they are due or `at_once`.
    fn send_events(&self, state: &mut ClientState, at_once: bool) {
        let has_waited = self.started.elapsed() > state.events_since + EVENTS_EVERY;
        let is_due = at_once || has_waited || state.events.len() >= EVENTS;
        if is_due && !state.events.is_empty() {
            let events = std::mem::take(&mut state.events);
            self.send(state, &ClientToServer::Events { events, dropped: 0 });
        }
    }

    /// Waits until `ready` returns a result.
    fn wait_until<T>(
        &self,
        interrupt: Interrupt,
        mut ready: impl FnMut(&mut ClientState) -> Option<T>,
    ) -> Result<T> {
        self.check_process()?;
        loop {
            let mut state = self.state();
            self.receive_all(&mut state, Duration::ZERO);
            if let Some(found) = ready(&mut state) {
                return Ok(found);
            }
            if let Some(reason) = &state.ended {
                return Err(ClientError::Connection(reason.clone()));
            }
            self.receive_all(&mut state, SLICE);
            let found = ready(&mut state);
            drop(state);
            if let Some(found) = found {
                return Ok(found);
            }
            // Let contending threads have the state first.
            while self.contenders.load(Ordering::SeqCst) > 0 {
                thread::yield_now();
            }
            if interrupt() {
                return Err(ClientError::Interrupted);
            }
        }
    }

    fn check_process(&self) -> Result<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        Err(ClientError::Connection(
            "this process is a fork of the one that connected\n  hint: call gt.connect again in the child".into(),
        ))
    }

    fn flush_now_and_then(&self) {
        let mut idle_rounds = 0;
        while !self.closing.load(Ordering::Acquire) {
            let visit = fork::visit();
            let session = lock(&self.session).as_ref().and_then(Weak::upgrade);
            let waiting = session.as_ref().is_some_and(|session| session.has_waiting());
            if let Some(session) = session.filter(|_| waiting) {
                session.flush();
                // Dropping the last reference here would make this thread join itself.
                drop(session);
            }
            if let Ok(mut state) = self.state.try_lock() {
                // Notices and the end of the session are handled even when no thread waits.
                self.receive_all(&mut state, Duration::ZERO);
                state.blocks.tidy();
                self.send_events(&mut state, false);
            }
            drop(visit);
            idle_rounds = if waiting { 0 } else { idle_rounds + 1 };
            if idle_rounds > IDLE_ROUNDS {
                self.idle.store(true, Ordering::SeqCst);
                thread::park_timeout(Duration::from_millis(500));
                self.idle.store(false, Ordering::SeqCst);
            } else {
                thread::park_timeout(FLUSH_EVERY);
            }
        }
    }
}

impl Driver for NetworkDriver {
    fn attach(&self, outbox: Weak<dyn Outbox>) {
        *lock(&self.shared.session) = Some(outbox);
    }

    /// A message through three processes costs about 25 µs, as much as a hundred small commands.
    fn batches(&self) -> Batches {
        Batches { commands: 512, work: 16 << 20 }
    }

    fn nudge(&self) {
        if self.shared.issues.is_on() {
            self.shared.issues.begin(self.shared.started.elapsed());
        }
        if self.shared.idle.load(Ordering::SeqCst)
            && let Some(flusher) = &*lock(&self.shared.flusher)
        {
            flusher.thread().unpark();
        }
    }

    fn submit(&self, batch: &mut Vec<ClientCommand>, work: u64) {
        let shared = &self.shared;
        if shared.check_process().is_err() {
            return batch.clear();
        }
        let weight: u64 = batch.iter().map(ClientCommand::weight).sum();
        let mut commands = std::mem::replace(batch, Vec::with_capacity(batch.len()));
        let mut state = shared.state();
        shared.ahead.submitted(weight, work);
        if state.shares_memory {
            for command in &mut commands {
                if let ClientCommand::Create(create) = command {
                    create.content = state.blocks.share(create.content.clone());
                }
            }
        }
        shared.send(&mut state, &ClientToServer::Stream(commands));
        if shared.issues.is_on() {
            shared.emit_issue(&mut state, weight);
        }
    }

    fn is_full(&self) -> bool {
        self.shared.ahead.is_full()
    }

    fn wait_for_room(&self, interrupt: Interrupt) -> Result<()> {
        let mut waiting = LongWait::new();
        self.shared.wait_until(interrupt, |state| {
            let has_room = !self.is_full();
            if !has_room && waiting.is_to_be_told() {
                self.shared.send(state, &ClientToServer::AwaitCredit);
            }
            has_room.then_some(())
        })
    }

    fn wait(&self, request: RequestId, interrupt: Interrupt) -> Result<Answer> {
        let answer = self.shared.wait_until(interrupt, |state| state.answers.take(request));
        if matches!(answer, Err(ClientError::Interrupted)) {
            self.abandon(request);
        }
        answer
    }

    fn abandon(&self, request: RequestId) {
        // In a forked child another thread may have left the lock taken.
        if self.shared.check_process().is_ok() {
            self.shared.state().answers.abandon(request);
        }
    }

    fn close(&self) {
        let shared = &self.shared;
        if shared.closing.swap(true, Ordering::SeqCst) || shared.check_process().is_err() {
            return;
        }
        let mut state = shared.state();
        shared.send_events(&mut state, true);
        if state.ended.is_none() {
            state.link.close();
        }
        state.ended.get_or_insert_with(|| "the session is closed".into());
        drop(state);
        let flusher = lock(&shared.flusher).take();
        if let Some(flusher) = flusher {
            flusher.thread().unpark();
            if flusher.thread().id() != thread::current().id() {
                let _ = flusher.join();
            }
        }
    }

    fn list_held_by(&self, lister: HeldLister) {
        let _ = self.shared.lister.set(lister);
    }

    fn answer_held(&self, held: HeldTensors) {
        if self.shared.check_process().is_ok() {
            let mut state = self.shared.state();
            self.shared.send(&mut state, &ClientToServer::Held(Box::new(held)));
        }
    }

    fn settle(&self, interrupt: Interrupt) -> Result<()> {
        let until = Instant::now() + SETTLE_LIMIT;
        let mut is_late = false;
        let mut ends = || {
            is_late = Instant::now() >= until;
            is_late || interrupt()
        };
        let settled =
            self.shared.wait_until(&mut ends, |state| state.blocks.are_read().then_some(()));
        match settled {
            Err(ClientError::Interrupted) if is_late => {
                let seconds = SETTLE_LIMIT.as_secs();
                Err(ClientError::Connection(format!(
                    "detach: the workers have not read the data of this session within {seconds} s\n  hint: `gt top` shows what they do; call gt.detach again"
                )))
            }
            settled => settled,
        }
    }

    fn end(&self) {
        let mut state = self.shared.state();
        self.shared.send(&mut state, &ClientToServer::End);
        drop(state);
        self.close();
    }

    fn numbers(&self) -> StreamNumbers {
        self.shared.numbers
    }

    fn data_roots(&self) -> Option<Vec<String>> {
        Some(self.shared.data_roots.clone())
    }

    fn describe(&self) -> String {
        format!("the server at {}", self.shared.address)
    }

    fn name(&self) -> String {
        self.shared.name.clone()
    }
}

impl Drop for NetworkDriver {
    fn drop(&mut self) {
        self.close();
    }
}
