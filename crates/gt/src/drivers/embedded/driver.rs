//! The session's side of an embedded runtime.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use gt_client::driver::{Driver, Interrupt, Outbox};
use gt_client::{ClientError, Result};
use gt_ir::message::Message;
use gt_ir::modifier::Modifier;
use gt_ir::{Command, RequestId};

use super::runtime::Runtime;
use crate::drivers::MakeWorker;

/// How much weight of commands may be under way.
pub const WINDOW: u64 = 16 << 10;

/// A thread that waits does work up to this cost itself: waking another takes as long.
const OWN_WORK: u64 = 256 << 10;

/// How long a wait lasts before the user may interrupt it,
const SLICE: Duration = Duration::from_millis(50);
/// and how long a thread looks for the answer before it sleeps.
const SPIN: Duration = Duration::from_micros(20);

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
        if let Some(reason) = self.runtime.refused() {
            return Err(ClientError::Connection(format!("the session has ended: {reason}")));
        }
        if self.runtime.is_closed() {
            return Err(ClientError::Connection("the session is closed".into()));
        }
        Ok(())
    }
}

impl Driver for EmbeddedDriver {
    fn attach(&self, outbox: Weak<dyn Outbox>) {
        self.runtime.attach(outbox);
    }

    fn nudge(&self) {
        self.runtime.nudge();
    }

    fn submit(&self, batch: &mut Vec<Command>, work: u64) {
        // Who asks for an answer will wait for it, and may do the work himself.
        let asks = matches!(
            batch.last(),
            Some(
                Command::Fetch { .. }
                    | Command::Stats { .. }
                    | Command::Status { .. }
                    | Command::Explain { .. }
                    | Command::Locate { .. }
            )
        );
        self.runtime.submit(batch, work);
        if !asks {
            self.runtime.wake();
        }
    }

    fn is_full(&self) -> bool {
        self.runtime.in_flight() > WINDOW
    }

    fn wait_for_room(&self, interrupt: Interrupt) -> Result<()> {
        let awaiting = self.runtime.await_arrivals();
        while self.is_full() {
            self.check_open()?;
            self.runtime.wake();
            awaiting.sleep(SLICE);
            if interrupt() {
                return Err(ClientError::Interrupted);
            }
        }
        Ok(())
    }

    fn wait(&self, request: RequestId, interrupt: Interrupt) -> Result<Message> {
        if self.runtime.work() <= OWN_WORK {
            while self.runtime.drive_here() {}
            if let Some(answer) = self.runtime.take_answer(request) {
                return Ok(answer);
            }
        }
        self.runtime.wake();
        let awaiting = self.runtime.await_arrivals();
        let spin_until = Instant::now() + SPIN;
        loop {
            if let Some(answer) = self.runtime.take_answer(request) {
                return Ok(answer);
            }
            self.check_open()?;
            if Instant::now() < spin_until {
                std::hint::spin_loop();
                continue;
            }
            // The workers' threads may all be at long operations, but not the dispatcher.
            if self.runtime.pass_messages() {
                continue;
            }
            awaiting.sleep(SLICE);
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
