//! Supervision of calls into engines.
//!
//! A worker process exits if a call into its engine does not return: the requests that wait for it
//! fail, and the server's other workers continue. Process exit waits until all threads have left
//! engines.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use gt::drivers::embedded::fork::InEngine;
use gt::environment;
use gt::ir::instruction::Operands;
use gt::ir::operation::Family;
use gt::ir::operation::ResultKind;
use gt::ir::{Meta, Operand, Operation};

use super::{EngineTensor, compiler};

/// How long any call of an engine may take if GT_ENGINE_TIMEOUT is not set.
const TIMEOUT: Duration = Duration::from_secs(60);
/// A call may take this multiple of its estimated time, if that is longer: estimates assume an idle
/// machine.
const COST_MARGIN: u64 = 1000;
/// A call of unknown cost may take this multiple of the timeout.
const UNKNOWN_COST: u32 = 30;
/// How often the watchdog checks whether a call has returned.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// How long process exit waits for threads in engines.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// The number of threads in engines.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// The thread that ends the process; unset before process exit.
static EXITING: OnceLock<ThreadId> = OnceLock::new();

/// Keeps all other threads out of engines from now on. Python stops its threads at process exit by
/// unwinding their stacks; unwinding through a library that does not support it aborts the process.
pub fn close_engines() {
    let _ = EXITING.set(thread::current().id());
    compiler::stop();
    let since = Instant::now();
    while INSIDE.load(Ordering::SeqCst) > 0 && since.elapsed() < EXIT_TIMEOUT {
        thread::sleep(Duration::from_millis(1));
    }
    // Let threads that are about to enter reach the check in `enter`, which parks them.
    thread::sleep(Duration::from_millis(5));
}

/// Returns whether the process is exiting.
pub fn is_exiting() -> bool {
    EXITING.get().is_some()
}

/// While this guard lives, process exit waits for its thread, which is in an engine or drops
/// objects of an engine.
pub struct ExitGuard(());

impl ExitGuard {
    /// Returns the guard, or parks this thread for ever if another one is ending the process.
    pub fn enter() -> ExitGuard {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        let inside = ExitGuard(());
        if EXITING.get().is_some_and(|ending| *ending != thread::current().id()) {
            drop(inside);
            loop {
                thread::park();
            }
        }
        inside
    }
}

impl Drop for ExitGuard {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The estimated cost of a call of an engine.
#[derive(Clone, Copy)]
pub enum Cost {
    /// At most this work ([`Operation::work`]).
    Work(u64),
    /// It runs user code, or waits for other workers.
    Unknown,
}

impl Cost {
    /// Returns the cost of an operation. The family of matrix products includes decompositions and
    /// attention, whose work can exceed the estimate by a factor of up to the length of an axis.
    pub fn of(operation: &Operation, operands: &[Operand<Meta>], output: Meta) -> Cost {
        if operation.facts.result == ResultKind::UserCode {
            return Cost::Unknown;
        }
        let work = operation.work(operands, output);
        if !matches!(operation.family, Family::Matmul | Family::Convolution) {
            return Cost::Work(work);
        }
        let metas = || operands.iter().filter_map(Operand::tensor).chain([&output]);
        let longest = metas().flat_map(|meta| meta.shape.dims()).max().copied().unwrap_or(1);
        let bytes: usize = metas().map(|meta| meta.bytes()).sum();
        Cost::Work(work.max((bytes as u64).saturating_mul(longest as u64 / 32)))
    }

    /// Returns the cost of an operation on an engine's tensors, for all results.
    pub fn of_call(
        operation: &Operation,
        operands: &Operands<EngineTensor>,
        outputs: &[Meta],
    ) -> Cost {
        let meta = |operand: &Operand<EngineTensor>| match operand {
            Operand::Scalar(scalar) => Operand::Scalar(*scalar),
            Operand::Tensor(held) => Operand::Tensor(held.meta),
        };
        let metas: Operands<Meta> = operands.iter().map(meta).collect();
        let costs = outputs.iter().map(|output| Cost::of(operation, &metas, *output));
        costs.fold(Cost::Work(0), Cost::and)
    }

    /// Returns the cost of two calls.
    pub fn and(self, other: Cost) -> Cost {
        match (self, other) {
            (Cost::Work(one), Cost::Work(other)) => Cost::Work(one.saturating_add(other)),
            _ => Cost::Unknown,
        }
    }
}

/// The running call of an engine, and the time that it may take.
#[derive(Clone)]
pub struct Watchdog {
    /// The engine's work per second.
    rate: u64,
    state: Arc<CallState>,
}

#[derive(Default)]
struct CallState {
    /// The number of the running call; 0 while the engine is idle.
    call: AtomicU64,
    calls: AtomicU64,
    /// The work of that call; [`u64::MAX`] if it is unknown.
    work: AtomicU64,
    /// The largest work of a call since a value was last read: an asynchronous device may still be
    /// executing it.
    largest: AtomicU64,
}

/// While this guard lives, a call of the engine is running.
pub struct EngineCallGuard(Arc<CallState>, ExitGuard, InEngine);

impl Watchdog {
    /// Returns the watchdog of an engine with this work per second.
    pub fn new(rate: u64) -> Watchdog {
        Watchdog { rate, state: Arc::default() }
    }

    /// Starts a call of this cost.
    pub fn begin(&self, cost: Cost) -> EngineCallGuard {
        let (inside, state) = (ExitGuard::enter(), &self.state);
        let work = match cost {
            Cost::Work(work) => work.max(state.largest.fetch_max(work, Ordering::Relaxed)),
            Cost::Unknown => u64::MAX,
        };
        state.work.store(work, Ordering::Relaxed);
        state.call.store(state.calls.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        EngineCallGuard(Arc::clone(state), inside, InEngine::enter())
    }

    /// Notes that a value was read: the device has executed all earlier calls.
    pub fn caught_up(&self) {
        self.state.largest.store(0, Ordering::Relaxed);
    }

    /// Returns how long a call of this work may take, at least `least`.
    fn limit(&self, work: u64, least: Duration) -> Duration {
        if work == u64::MAX {
            return least * UNKNOWN_COST;
        }
        let seconds = work.saturating_mul(COST_MARGIN) as f64 / self.rate.max(1) as f64;
        least.max(Duration::from_secs_f64(seconds))
    }

    /// Starts a thread that exits the process when a call exceeds the time that its cost and
    /// GT_ENGINE_TIMEOUT allow.
    pub fn end_process_if_it_hangs(&self, worker: &str, engine: &str) {
        let least = environment::seconds("GT_ENGINE_TIMEOUT").unwrap_or(TIMEOUT);
        let (watch, text) = (self.clone(), format!("gt worker: {worker}: the engine '{engine}'"));
        let poll = move || {
            // Polls are counted instead of reading a clock: a process that was suspended does not
            // hang.
            let (mut call, mut waited) = (0, Duration::ZERO);
            loop {
                thread::sleep(POLL_INTERVAL);
                let before = std::mem::replace(&mut call, watch.state.call.load(Ordering::Relaxed));
                let is_same = call != 0 && call == before;
                waited = if is_same { waited + POLL_INTERVAL } else { Duration::ZERO };
                let limit = watch.limit(watch.state.work.load(Ordering::Relaxed), least);
                if is_same && waited > limit {
                    eprintln!(
                        "{text} has not come back for {:.0} s (GT_ENGINE_TIMEOUT); the worker ends",
                        limit.as_secs_f64()
                    );
                    std::process::exit(3);
                }
            }
        };
        // If the thread cannot be started, calls are not supervised.
        let _ = thread::Builder::new().name("gt-watch".into()).spawn(poll);
    }
}

impl Drop for EngineCallGuard {
    fn drop(&mut self) {
        self.0.call.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use gt::ir::{DType, Shape, ops};

    use super::*;

    #[test]
    fn the_time_limit_grows_with_the_cost_of_a_call() {
        let (watch, least) = (Watchdog::new(1_000_000_000), Duration::from_secs(60));
        let limit = |operation, dims: &[usize]| {
            let meta = Meta::new(DType::F32, Shape::new(dims).unwrap());
            let operands = [Operand::Tensor(meta), Operand::Tensor(meta)];
            match Cost::of(operation, &operands, meta) {
                Cost::Work(work) => watch.limit(work, least).as_secs(),
                Cost::Unknown => watch.limit(u64::MAX, least).as_secs(),
            }
        };
        assert_eq!(limit(&ops::binary::ADD, &[1000]), 60);
        assert_eq!(limit(&ops::binary::ADD, &[100_000_000]), 1200);
        assert_eq!(limit(&ops::matmul::MATMUL, &[10_000, 10_000]), 374_400);
        assert_eq!(limit(&ops::custom::CUSTOM, &[1]), 1800);
    }

    #[test]
    fn the_largest_earlier_work_counts_until_a_value_is_read() {
        let watch = Watchdog::new(1_000_000_000);
        let work = || watch.state.work.load(Ordering::Relaxed);
        drop(watch.begin(Cost::Work(500)));
        drop(watch.begin(Cost::Work(7)));
        assert_eq!(work(), 500);
        watch.caught_up();
        drop(watch.begin(Cost::Work(7)));
        assert_eq!((work(), watch.state.call.load(Ordering::Relaxed)), (7, 0));
    }
}
