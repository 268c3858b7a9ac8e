//! Calls that can be paused: each runs on a thread of its own, which stops between the pieces of its
//! loops while another call runs.
//!
//! The loops are those that several threads would share: their pieces do not depend on each other, so
//! a pause changes no bit of the result.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gt_worker::engine::Notifier;
use gt_worker::engine::guarded;
use gt_worker::engine::pausable::{CallResult, EngineCall, PausableCall};

use crate::NativeEngine;
use crate::budget::{self, Budget};
use crate::gate::PauseGate;
use crate::tensor::Tensor;

/// The most calls at a time; all but one of them are paused.
const MOST: usize = 16;

/// A call, as its thread runs it.
type Job = Box<dyn FnOnce(&mut NativeEngine) + Send>;

/// The threads of an engine's pausable calls. They start when they are needed.
#[derive(Default)]
pub struct CallThreads(Arc<JobQueue>);

#[derive(Default)]
struct JobQueue {
    state: Mutex<JobQueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct JobQueueState {
    jobs: VecDeque<Job>,
    /// The threads, and those of them that wait for a job.
    threads: usize,
    idle: usize,
    shuts_down: bool,
    /// Called when a call is complete.
    notify: Option<Notifier>,
    /// Budgets that no call uses.
    budgets: Vec<&'static Budget>,
}

impl JobQueue {
    fn lock(&self) -> MutexGuard<'_, JobQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs jobs until the engine is dropped.
    fn serve(&self, mut engine: NativeEngine) {
        // It was counted as idle when it was started.
        let mut state = self.lock();
        loop {
            if state.shuts_down {
                return;
            }
            if let Some(job) = state.jobs.pop_front() {
                state.idle -= 1;
                drop(state);
                job(&mut engine);
                state = self.lock();
                // Before the driver is woken, which begins the next call.
                state.idle += 1;
                if let Some(notify) = state.notify.clone() {
                    drop(state);
                    notify();
                    state = self.lock();
                }
                continue;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl CallThreads {
    /// Makes sure that a thread waits for a job, which may use `count` threads. Returns false if
    /// there are too many, or none can be started.
    fn make_idle(&self, count: usize) -> bool {
        let mut state = self.0.lock();
        if state.idle > state.jobs.len() {
            return true;
        }
        if state.threads == MOST {
            return false;
        }
        let queue = Arc::clone(&self.0);
        let builder = std::thread::Builder::new().name(format!("gt-call-{}", state.threads));
        if builder.spawn(move || queue.serve(NativeEngine::new(count))).is_err() {
            return false;
        }
        state.threads += 1;
        state.idle += 1;
        true
    }

    /// Submits a job to a thread that waits for one.
    fn submit(&self, job: Job) {
        self.0.lock().jobs.push_back(job);
        self.0.changed.notify_one();
    }

    /// Sets what is called when a call is complete.
    pub fn notify(&mut self, notify: Notifier) {
        self.0.lock().notify = Some(notify);
    }

    /// Forgets the threads, which do not exist in a forked child.
    pub fn after_fork(&mut self) {
        std::mem::forget(std::mem::take(self));
    }
}

impl Drop for CallThreads {
    fn drop(&mut self) {
        self.0.lock().shuts_down = true;
        self.0.changed.notify_all();
    }
}

/// The budget of a call, shared by the call and its thread.
struct CallBudget {
    budget: &'static Budget,
    queue: Arc<JobQueue>,
}

impl CallBudget {
    fn new(queue: &Arc<JobQueue>) -> CallBudget {
        let budget = queue.lock().budgets.pop().unwrap_or_else(Budget::new);
        CallBudget { budget, queue: Arc::clone(queue) }
    }
}

impl Drop for CallBudget {
    fn drop(&mut self) {
        self.queue.lock().budgets.push(self.budget);
    }
}

/// A call that has begun.
struct NativeCall {
    gate: Arc<PauseGate>,
    result: Arc<Mutex<Option<CallResult<Tensor>>>>,
    /// Its budget, and that of the engine, if there is one.
    budgets: Option<(Arc<CallBudget>, &'static Budget)>,
    /// The bytes that its budget had when it began or was resumed.
    given: u64,
    /// The bytes that it had allocated before, less those that it has freed.
    held: i64,
    is_paused: bool,
}

impl NativeCall {
    fn new(queue: &Arc<JobQueue>) -> NativeCall {
        let budgets = budget::current().map(|of| (Arc::new(CallBudget::new(queue)), of));
        let mut call = NativeCall {
            gate: Arc::default(),
            result: Arc::default(),
            budgets,
            given: 0,
            held: 0,
            is_paused: false,
        };
        call.give();
        call.gate.enter();
        call
    }

    /// Gives it what the engine's budget has left.
    fn give(&mut self) {
        if let Some((own, of)) = &self.budgets {
            self.given = of.left();
            own.budget.set(self.given);
        }
    }

    /// The job that runs it.
    fn job(
        &self,
        run: impl FnOnce(&mut NativeEngine) -> CallResult<Tensor> + Send + 'static,
    ) -> Job {
        let (gate, result) = (Arc::clone(&self.gate), Arc::clone(&self.result));
        let own = self.budgets.as_ref().map(|(own, _)| Arc::clone(own));
        Box::new(move |engine| {
            budget::enter(own.as_ref().map(|own| own.budget));
            engine.threads.set_gate(Some(Arc::clone(&gate)));
            // An abandoned call unwinds to here.
            let made = catch_unwind(AssertUnwindSafe(|| run(engine))).ok();
            engine.threads.set_gate(None);
            *result.lock().unwrap_or_else(PoisonError::into_inner) = made;
            budget::enter(None);
            gate.complete();
        })
    }
}

impl PausableCall<Tensor> for NativeCall {
    fn wait(&mut self, at_most: Duration) -> bool {
        self.gate.wait(at_most)
    }

    fn pause(&mut self, at_most: Duration) -> bool {
        let is_paused = self.gate.close(at_most);
        if is_paused && !self.is_paused {
            self.is_paused = true;
            if let Some((own, _)) = &self.budgets {
                self.held += self.given as i64 - own.budget.left() as i64;
            }
        }
        is_paused
    }

    fn resume(&mut self) {
        if self.is_paused {
            self.give();
            self.is_paused = false;
        }
        self.gate.open();
    }

    fn held(&self) -> u64 {
        self.held.max(0) as u64
    }

    fn finish(self: Box<Self>) -> CallResult<Tensor> {
        if let Some((own, of)) = &self.budgets
            && !self.is_paused
        {
            of.set(own.budget.left());
        }
        let result = self.result.lock().unwrap_or_else(PoisonError::into_inner).take();
        result.expect("a complete call has a result")
    }
}

impl Drop for NativeCall {
    fn drop(&mut self) {
        self.gate.abandon();
    }
}

impl NativeEngine {
    /// Begins a call: see [`Engine::begin`].
    pub(crate) fn begin_call<'a>(
        &self,
        call: EngineCall<'a, NativeEngine>,
    ) -> Result<Box<dyn PausableCall<Tensor>>, EngineCall<'a, NativeEngine>> {
        let queue = &self.calls.0;
        if !self.calls.make_idle(self.threads.count()) {
            return Err(call);
        }
        let native_call = NativeCall::new(queue);
        let job = match call {
            EngineCall::Operation(call) => native_call.job(move |engine| call.run(engine)),
            EngineCall::Program { program, mut inputs } => {
                let program = Arc::clone(program);
                native_call.job(move |engine| {
                    let outputs = guarded(|| program.launch(engine, &mut inputs));
                    CallResult { outputs, inputs }
                })
            }
        };
        self.calls.submit(job);
        Ok(Box::new(native_call))
    }
}
