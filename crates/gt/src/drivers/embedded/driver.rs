//! The session's side of an embedded runtime.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use gt_client::driver::{Driver, Interrupt, Outbox};
use gt_client::{ClientError, Result};
use gt_ir::message::Message;
use gt_ir::modifier::Modifier;
use gt_ir::{ClientCommand, RequestId};

use super::runtime::Runtime;
use crate::drivers::MakeWorker;

/// A thread that waits does work up to this cost itself: waking another takes as long.
const OWN_WORK: u64 = 256 << 10;

/// How long a wait lasts before the user may interrupt it,
const SLICE: Duration = Duration::from_millis(50);
/// and how long a thread looks for the answer before it parks.
const SPIN: Duration = Duration::from_micros(20);
/// A thread that computes itself looks at the clock after so many turns.
const TURNS: u32 = 8;

pub struct EmbeddedDriver {
    runtime: Arc<Runtime>,
}

impl EmbeddedDriver {
    pub fn new(
        workers: usize,
        make: MakeWorker,
        modifiers: Vec<Box<dyn Modifier>>,
    ) -> EmbeddedDriver {
        EmbeddedDriver { runtime: Runtime::new(workers, make, modifiers) }
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

    fn take_answer(&self, request: RequestId) -> Option<Message> {
        let _call = self.runtime.enter();
        self.runtime.client.take_answer(request)
    }

    /// Does the work on this thread until the answer is there, or there is nothing left to do that
    /// another thread is not at. It looks for its own answer and for the user's interrupt between
    /// turns: others' work does not hold it up.
    fn work_for(&self, request: RequestId, interrupt: &mut Interrupt) -> Result<Option<Message>> {
        let (mut turns, mut asked) = (0, None);
        loop {
            if let Some(answer) = self.take_answer(request) {
                return Ok(Some(answer));
            }
            let worked = {
                let _call = self.runtime.enter();
                self.runtime.step_all()
            };
            if !worked {
                return Ok(self.take_answer(request));
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
}

/// Has a thread unparked when something arrives, as long as it lives.
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
        // Who asks for an answer will wait for it, and may do the work himself.
        let asks = batch.last().is_some_and(|command| command.request().is_some());
        self.runtime.submit(batch, work);
        if !asks {
            self.runtime.wake();
        }
    }

    fn is_full(&self) -> bool {
        self.runtime.client.is_full()
    }

    fn wait_for_room(&self, interrupt: Interrupt) -> Result<()> {
        let _waiting = Waiting::new(&self.runtime);
        while self.is_full() {
            self.check_open()?;
            self.runtime.wake();
            // No lock is held: a fork may happen.
            thread::park_timeout(SLICE);
            if interrupt() {
                return Err(ClientError::Interrupted);
            }
        }
        Ok(())
    }

    fn wait(&self, request: RequestId, mut interrupt: Interrupt) -> Result<Message> {
        if self.runtime.client.work() <= OWN_WORK
            && let Some(answer) = self.work_for(request, &mut interrupt)?
        {
            // What is left is for the threads.
            if self.runtime.has_any_work() {
                self.runtime.wake();
            }
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
            // The workers' threads may all be at long operations, but not the dispatcher.
            let passed = {
                let _call = self.runtime.enter();
                self.runtime.dispatch()
            };
            if passed {
                continue;
            }
            thread::park_timeout(SLICE);
            if interrupt() {
                return Err(ClientError::Interrupted);
            }
        }
    }

    fn close(&self) {
        self.runtime.close();
    }

    fn describe(&self) -> String {
        format!("this process, {} worker(s)", self.runtime.workers())
    }
}

impl Drop for EmbeddedDriver {
    fn drop(&mut self) {
        self.runtime.close();
    }
}
