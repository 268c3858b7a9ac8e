//! Who is in an engine: a worker process ends if its engine does not come back (what waits for it
//! fails then, and the server's other workers go on), and a process that ends waits until all
//! threads have left.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use gt::drivers::embedded::fork::InEngine;
use gt::environment;

use super::compiler;

/// How long one call of an engine may take if GT_ENGINE_TIMEOUT says nothing.
const TIMEOUT: Duration = Duration::from_secs(1800);

/// How long the end of a process waits for threads in engines.
const LAST: Duration = Duration::from_secs(5);

/// How many threads are in an engine.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// The thread that ends the process, once it does.
static ENDING: OnceLock<ThreadId> = OnceLock::new();

/// Keeps all other threads out of engines from now on: Python stops a thread of its own at the end by
/// unwinding it, and a library in between that does not expect it aborts the process.
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

/// A thread that is in an engine, or drops what is an engine's; the end of the process waits for it.
pub struct Inside(());

impl Inside {
    /// Comes back only if the process is not about to end.
    pub fn enter() -> Inside {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        let inside = Inside(());
        if ENDING.get().is_some_and(|ending| *ending != thread::current().id()) {
            drop(inside);
            loop {
                thread::park();
            }
        }
        inside
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Since when an engine is at work.
#[derive(Clone)]
pub struct Watch {
    started: Instant,
    /// Milliseconds after the start, plus 1; 0 while it is idle.
    busy: Arc<AtomicU64>,
}

/// While this lives, the engine is at work.
pub struct AtWork(Arc<AtomicU64>, Inside, InEngine);

impl Watch {
    pub fn new() -> Watch {
        Watch { started: Instant::now(), busy: Arc::default() }
    }

    pub fn begin(&self) -> AtWork {
        let inside = Inside::enter();
        self.busy.store(self.started.elapsed().as_millis() as u64 + 1, Ordering::Relaxed);
        AtWork(Arc::clone(&self.busy), inside, InEngine::enter())
    }

    /// Ends the process when one call takes longer than GT_ENGINE_TIMEOUT says.
    pub fn end_process_if_it_hangs(&self, worker: &str, engine: &str) {
        let limit = environment::seconds("GT_ENGINE_TIMEOUT").unwrap_or(TIMEOUT);
        let (watch, text) = (self.clone(), format!("gt worker: {worker}: the engine '{engine}'"));
        let look = move || {
            loop {
                thread::sleep(Duration::from_millis(200));
                let since = watch.busy.load(Ordering::Relaxed);
                let now = watch.started.elapsed().as_millis() as u64 + 1;
                if since != 0 && Duration::from_millis(now.saturating_sub(since)) > limit {
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

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}
