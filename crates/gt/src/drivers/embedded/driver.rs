//! The embedded driver: how a session submits commands to its runtime and waits for answers.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use gt_client::driver::{Driver, HeldLister, Interrupt, Outbox};
use gt_client::{ClientError, Result};
use gt_ir::message::{Answer, ClientToServer};
use gt_ir::modifier::Modifier;
use gt_ir::status::inspection::HeldTensors;
use gt_ir::{ClientCommand, RequestId, SessionId, SessionOrigin, TensorData, TensorId};

use super::runtime::Runtime;
use crate::drivers::MakeWorker;
use crate::drivers::run_ahead::LongWait;

/// A waiting thread runs up to this much work itself: waking another thread takes as long.
const OWN_WORK: u64 = 256 << 10;

/// The most turns that a read of a value runs.
const READ_TURNS: u32 = 64;

/// The interval at which a waiting thread checks for the user's interrupt.
const SLICE: Duration = Duration::from_millis(50);
/// How long a thread spins before it parks.
const SPIN: Duration = Duration::from_micros(20);
/// The number of turns after which a computing thread reads the clock.
const TURNS: u32 = 8;

pub struct EmbeddedDriver {
    runtime: Arc<Runtime>,
    /// The name under which the dispatcher shows the session.
    name: String,
}

impl EmbeddedDriver {
    pub fn new(
        workers: usize,
        make: MakeWorker,
        modifiers: Vec<Box<dyn Modifier>>,
        origin: SessionOrigin,
    ) -> EmbeddedDriver {
        // Its dispatcher has no other session.
        let name = origin.label("", SessionId(1));
        EmbeddedDriver { runtime: Runtime::new(workers, make, modifiers, origin), name }
    }

    /// Ends waits of the session's lanes that have taken too long.
    fn tick(&self) {
        let _call = self.runtime.enter();
        self.runtime.tick();
    }

    fn check_open(&self) -> Result<()> {
        if let Some(reason) = self.runtime.client.refused() {
            return Err(ClientError::Connection(format!("the session has ended: {reason}")));
        }
        if self.runtime.threads.is_closing() {
            return Err(ClientError::Connection("the session is closed".into()));
        }
        Ok(())
    }

    fn take_answer(&self, request: RequestId) -> Option<Answer> {
        let _call = self.runtime.enter();
        self.runtime.client.take_answer(request)
    }

    /// Drives the cores on this thread until the answer has arrived (`Some`), or all remaining work
    /// is in the hands of other threads. Checks for the answer and the user's interrupt between
    /// turns, so that other work does not delay it.
    fn work_for(&self, request: RequestId, interrupt: &mut Interrupt) -> Result<Option<Answer>> {
        let (mut turns, mut asked) = (0, None);
        loop {
            let worked = {
                let _call = self.runtime.enter();
                let passed = self.runtime.dispatch();
                if let Some(answer) = self.runtime.client.take_answer(request) {
                    return Ok(Some(answer));
                }
                passed | self.runtime.step_all()
            };
            if !worked {
                return Ok(None);
            }
            turns += 1;
            if turns % TURNS == 0 {
                let since = *asked.get_or_insert_with(Instant::now);
                if since.elapsed() >= SLICE {
                    asked = None;
                    if interrupt() {
                        return Err(ClientError::Interrupted);
                    }
                }
            }
        }
    }

    /// The threads do the remaining work. Unparking one needlessly costs as much as a small operation.
    fn leave_rest(&self) {
        if self.runtime.client.ahead.is_at_work() && self.runtime.has_any_work() {
            self.runtime.wake();
        }
    }

    /// Works, then waits, until the answer has arrived.
    fn answer(&self, request: RequestId, interrupt: &mut Interrupt) -> Result<Answer> {
        if self.runtime.client.ahead.work() <= OWN_WORK
            && let Some(answer) = self.work_for(request, interrupt)?
        {
            self.leave_rest();
            return Ok(answer);
        }
        self.runtime.wake();
        let _waiting = Waiting::new(&self.runtime);
        let spin_until = Instant::now() + SPIN;
        loop {
            if let Some(answer) = self.take_answer(request) {
                return Ok(answer);
            }
            self.check_open()?;
            if Instant::now() < spin_until {
                std::hint::spin_loop();
                continue;
            }
            // The workers' threads may all be in long operations: keep the dispatcher going.
            let passed = {
                let _call = self.runtime.enter();
                self.runtime.dispatch()
            };
            if passed {
                continue;
            }
            thread::park_timeout(SLICE);
            self.tick();
            if interrupt() {
                return Err(ClientError::Interrupted);
            }
        }
    }
}

/// A guard: while it lives, the thread is unparked on each arrival.
struct Waiting<'a>(&'a Runtime);

impl<'a> Waiting<'a> {
    fn new(runtime: &'a Runtime) -> Waiting<'a> {
        let _call = runtime.enter();
        runtime.client.wait();
        Waiting(runtime)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let _call = self.0.enter();
        self.0.client.stop_waiting();
    }
}

impl Driver for EmbeddedDriver {
    fn attach(&self, outbox: Weak<dyn Outbox>) {
        self.runtime.attach(outbox);
    }

    fn nudge(&self) {
        self.runtime.nudge();
    }

    fn submit(&self, batch: &mut Vec<ClientCommand>, work: u64) {
        // After a request the thread will wait, and may do the work itself.
        let asks = batch.last().is_some_and(|command| command.request().is_some());
        self.runtime.submit(batch, work);
        if !asks {
            self.runtime.wake();
        }
    }

    fn submit_to_read(&self, batch: &mut Vec<ClientCommand>, work: u64) {
        self.runtime.submit(batch, work);
    }

    fn can_read(&self) -> bool {
        self.runtime.can_read()
    }

    fn read(&self, tensor: TensorId) -> Option<TensorData> {
        if self.runtime.client.ahead.work() > OWN_WORK {
            return None;
        }
        for _ in 0..READ_TURNS {
            // The caller may have Python's lock, which a fork that has begun may wait for.
            let _call = self.runtime.try_enter()?;
            if let Some(found) = self.runtime.read(tensor) {
                self.leave_rest();
                return Some(found);
            }
            if !(self.runtime.dispatch() | self.runtime.step_all()) {
                return None;
            }
        }
        None
    }

    fn is_full(&self) -> bool {
        self.runtime.client.ahead.is_full()
    }

    fn wait_for_room(&self, interrupt: Interrupt) -> Result<()> {
        let _waiting = Waiting::new(&self.runtime);
        let mut waiting = LongWait::new();
        while self.is_full() {
            self.check_open()?;
            self.runtime.wake();
            // No lock is held here, as the process may fork meanwhile.
            thread::park_timeout(SLICE);
            self.tick();
            if waiting.is_to_be_told() {
                self.runtime.leave(ClientToServer::AwaitCredit);
            }
            if interrupt() {
                return Err(ClientError::Interrupted);
            }
        }
        Ok(())
    }

    fn wait(&self, request: RequestId, mut interrupt: Interrupt) -> Result<Answer> {
        let answer = self.answer(request, &mut interrupt);
        if matches!(answer, Err(ClientError::Interrupted)) {
            let _call = self.runtime.enter();
            self.runtime.client.abandon(request);
        }
        answer
    }

    fn abandon(&self, request: RequestId) {
        let _call = self.runtime.enter_briefly();
        self.runtime.client.abandon(request);
    }

    fn close(&self) {
        self.runtime.close();
    }

    fn list_held_by(&self, lister: HeldLister) {
        let _ = self.runtime.client.lister.set(lister);
    }

    fn answer_held(&self, held: HeldTensors) {
        self.runtime.leave(ClientToServer::Held(Box::new(held)));
    }

    fn settle(&self, _interrupt: Interrupt) -> Result<()> {
        Err(ClientError::usage(
            "detach: the session runs on workers of this process, and ends with it\n  hint: start a server with `gt server` and workers with `gt worker`, and connect to it by gt.connect(ADDRESS)",
        ))
    }

    fn data_roots(&self) -> Option<Vec<String>> {
        None
    }

    fn describe(&self) -> String {
        format!("this process, {} worker(s)", self.runtime.workers())
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

impl Drop for EmbeddedDriver {
    fn drop(&mut self) {
        self.runtime.close();
    }
}
