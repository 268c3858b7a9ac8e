//! Who is in an engine: a worker process ends if its engine does not come back (what waits for it
//! fails then, and the server's other workers go on), and a process that ends waits until all
//! threads have left.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use gt::drivers::embedded::fork::InEngine;
use gt::environment;
use gt::ir::instruction::Operands;
use gt::ir::operation::Family;
use gt::ir::ops::custom::CUSTOM;
use gt::ir::{Meta, Operand, Operation};

use super::{EngineTensor, compiler};

/// How long any call of an engine may take if GT_ENGINE_TIMEOUT says nothing.
const TIMEOUT: Duration = Duration::from_secs(60);
/// A call may take longer by its estimated cost: a so-manifold of it, as estimates are of a machine
/// that has nothing else to do.
const PATIENCE: u64 = 1000;
/// A call whose cost nobody knows may take so-manifold the time of others.
const UNKNOWN: u32 = 30;
/// How often it is looked whether a call has come back.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How long the end of a process waits for threads in engines.
const LAST: Duration = Duration::from_secs(5);

/// How many threads are in an engine.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// The thread that ends the process, once it does.
static ENDING: OnceLock<ThreadId> = OnceLock::new();

/// Keeps all other threads out of engines from now on: Python stops a thread of its own at the end
/// by unwinding it, and a library in between that does not expect it aborts the process.
pub fn close_engines() {
    let _ = ENDING.set(thread::current().id());
    compiler::stop();
    let since = Instant::now();
    while INSIDE.load(Ordering::SeqCst) > 0 && since.elapsed() < LAST {
        thread::sleep(Duration::from_millis(1));
    }
    // Those on their way come to their next wait.
    thread::sleep(Duration::from_millis(5));
}

/// Whether the process is about to end.
pub fn is_ending() -> bool {
    ENDING.get().is_some()
}

/// A thread that is in an engine, or drops what is an engine's; the end of the process waits for
/// it.
pub struct ExitGuard(());

impl ExitGuard {
    /// Comes back only if the process is not about to end.
    pub fn enter() -> ExitGuard {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        let inside = ExitGuard(());
        if ENDING.get().is_some_and(|ending| *ending != thread::current().id()) {
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

/// What a call of an engine costs.
#[derive(Clone, Copy)]
pub enum Cost {
    /// At most this work ([`Operation::work`]).
    Work(u64),
    /// It runs a user's code, or waits for others.
    Unknown,
}

impl Cost {
    /// That of an operation. Decompositions and attention take longer than their estimates say, by
    /// up to the length of an axis.
    pub fn of(operation: &Operation, operands: &[Operand<Meta>], output: Meta) -> Cost {
        if *operation == CUSTOM {
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

    /// That of an operation on an engine's tensors, with all results.
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

    /// That of several calls.
    pub fn and(self, other: Cost) -> Cost {
        match (self, other) {
            (Cost::Work(one), Cost::Work(other)) => Cost::Work(one.saturating_add(other)),
            _ => Cost::Unknown,
        }
    }
}

/// Since when an engine is at work, and what it may cost.
#[derive(Clone)]
pub struct Watchdog {
    /// The work that the engine does in a second.
    rate: u64,
    state: Arc<CallState>,
}

#[derive(Default)]
struct CallState {
    /// The number of the call under way; 0 while it is idle.
    call: AtomicU64,
    calls: AtomicU64,
    /// The work of that call, [`u64::MAX`] if it is not known.
    work: AtomicU64,
    /// The most work of a call since a value was read: a device that runs ahead may be at it.
    most: AtomicU64,
}

/// While this lives, the engine is at work.
pub struct EngineCallGuard(Arc<CallState>, ExitGuard, InEngine);

impl Watchdog {
    /// That of an engine which does this work in a second.
    pub fn new(rate: u64) -> Watchdog {
        Watchdog { rate, state: Arc::default() }
    }

    pub fn begin(&self, cost: Cost) -> EngineCallGuard {
        let (inside, state) = (ExitGuard::enter(), &self.state);
        let work = match cost {
            Cost::Work(work) => work.max(state.most.fetch_max(work, Ordering::Relaxed)),
            Cost::Unknown => u64::MAX,
        };
        state.work.store(work, Ordering::Relaxed);
        state.call.store(state.calls.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        EngineCallGuard(Arc::clone(state), inside, InEngine::enter())
    }

    /// A value was read: the device has done all before.
    pub fn caught_up(&self) {
        self.state.most.store(0, Ordering::Relaxed);
    }

    /// How long a call of this work may take, where any may take `least`.
    fn limit(&self, work: u64, least: Duration) -> Duration {
        if work == u64::MAX {
            return least * UNKNOWN;
        }
        let seconds = work.saturating_mul(PATIENCE) as f64 / self.rate.max(1) as f64;
        least.max(Duration::from_secs_f64(seconds))
    }

    /// Ends the process when one call takes longer than its cost and GT_ENGINE_TIMEOUT allow.
    pub fn end_process_if_it_hangs(&self, worker: &str, engine: &str) {
        let least = environment::seconds("GT_ENGINE_TIMEOUT").unwrap_or(TIMEOUT);
        let (watch, text) = (self.clone(), format!("gt worker: {worker}: the engine '{engine}'"));
        let look = move || {
            // Looks are counted, not hours: a process that is stopped for a time is none that
            // hangs.
            let (mut call, mut waited) = (0, Duration::ZERO);
            loop {
                thread::sleep(LOOK_EVERY);
                let before = std::mem::replace(&mut call, watch.state.call.load(Ordering::Relaxed));
                let is_same = call != 0 && call == before;
                waited = if is_same { waited + LOOK_EVERY } else { Duration::ZERO };
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
        // Without a thread to look there is nobody to end it.
        let _ = thread::Builder::new().name("gt-watch".into()).spawn(look);
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
    fn a_call_may_take_as_long_as_it_may_cost() {
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
    fn what_a_device_may_still_be_at_counts_until_a_value_is_read() {
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
