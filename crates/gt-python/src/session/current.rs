//! The session that a thread uses: that of its innermost `with` block; else the one that the thread
//! connected to; else the session of the process, which the main thread connects to or the first
//! tensor starts. A PyTorch kernel uses the session of its operands.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::Duration;

use gt::Session;
use pyo3::exceptions::{PyConnectionError, PyRuntimeError};
use pyo3::prelude::*;

use super::exit;
use super::fork::ForkBlocker;
use super::handle::{self, SessionHandle};
use super::origin::origin;
use super::wait::detached;
use crate::source;
use crate::user_code::LATEST;

/// The session of the process, used by all threads that have not connected to one.
pub struct ProcessSession {
    pub handle: Option<Arc<SessionHandle>>,
    /// The number of workers of an embedded session, set by `gpu_workers`; `None` for one per GPU.
    pub workers: Option<usize>,
    /// The seed set by `manual_seed`.
    pub seed: Option<u64>,
}

static PROCESS: Mutex<ProcessSession> =
    Mutex::new(ProcessSession { handle: None, workers: None, seed: None });

/// The sessions of a thread.
struct ThreadSessions {
    /// The session of the operands of the running kernel.
    operands: Option<Session>,
    /// The `with` blocks that the thread is in, innermost last.
    blocks: Vec<WithBlock>,
    /// The session that the thread connected to, also after it disconnected. Unused in the main
    /// thread, which connects the process.
    connection: Option<Arc<SessionHandle>>,
    /// The seed set by `manual_seed` since the thread connected.
    seed: Option<u64>,
}

struct WithBlock {
    handle: Arc<SessionHandle>,
    /// The end of the block closes the session.
    closes: bool,
}

thread_local! {
    static THREAD: RefCell<ThreadSessions> = const {
        RefCell::new(ThreadSessions {
            operands: None,
            blocks: Vec::new(),
            connection: None,
            seed: None,
        })
    };
}

fn set_operands(session: Option<Session>) -> Option<Session> {
    THREAD.with_borrow_mut(|thread| std::mem::replace(&mut thread.operands, session))
}

/// Runs a function whose new tensors belong to a session.
pub fn within<T>(session: Session, function: impl FnOnce() -> T) -> T {
    struct RestoreOperands(Option<Session>);
    impl Drop for RestoreOperands {
        fn drop(&mut self) {
            set_operands(self.0.take());
        }
    }
    let _restore = RestoreOperands(set_operands(Some(session)));
    function()
}

/// The session that a thread uses, open or closed, and how the thread selected it.
pub enum UsedSession {
    Block {
        handle: Arc<SessionHandle>,
        closes: bool,
    },
    /// A thread other than the main one connected to it.
    Own(Arc<SessionHandle>),
    /// The session of the process, used by the main thread.
    Main(Arc<SessionHandle>),
    /// The session of the process, used by another thread.
    Shared(Arc<SessionHandle>),
    /// The session of the process, which was not started yet.
    Nothing,
}

impl UsedSession {
    /// Returns the handle of the session, if there is one.
    pub fn handle(self) -> Option<Arc<SessionHandle>> {
        match self {
            UsedSession::Nothing => None,
            UsedSession::Block { handle, .. }
            | UsedSession::Own(handle)
            | UsedSession::Main(handle)
            | UsedSession::Shared(handle) => Some(handle),
        }
    }
}

/// Locks the session of the process. The thread that starts a session holds this lock while it
/// loads an engine, for which it needs the GIL: other threads wait without the GIL. Every thread
/// acquires the lock while it holds the GIL, so that at a fork only a thread that starts a session
/// has it.
pub fn process() -> MutexGuard<'static, ProcessSession> {
    loop {
        match PROCESS.try_lock() {
            Ok(process) => return process,
            Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                Python::attach(|py| detached(py, || thread::sleep(Duration::from_micros(50))));
            }
        }
    }
}

impl ThreadSessions {
    fn handle(&self) -> Option<&Arc<SessionHandle>> {
        self.blocks.last().map(|block| &block.handle).or(self.connection.as_ref())
    }
}

/// Returns the session that new tensors belong to; starts an embedded one if there is none.
pub fn current() -> PyResult<Session> {
    if let Some(session) = THREAD.with_borrow(|thread| thread.operands.clone()) {
        return Ok(session);
    }
    if source::runs_no_user_code()
        && let Some(session) = LATEST.session()
    {
        return Ok(session);
    }
    let found = THREAD.with_borrow(|thread| thread.handle().map(|handle| handle.session()));
    let found = found.or_else(|| process().handle.as_ref().map(|handle| handle.session()));
    match found {
        Some(Some(session)) => Ok(session),
        Some(None) => Err(closed()),
        None => Python::attach(start)?.session().ok_or_else(closed),
    }
}

/// Returns the handle of the session that new tensors belong to.
pub fn handle(py: Python<'_>) -> PyResult<Arc<SessionHandle>> {
    let handle = match used(py).handle() {
        None => start(py)?,
        Some(handle) => handle,
    };
    if handle.is_closed() { Err(closed()) } else { Ok(handle) }
}

/// Starts the session of the process, unless another thread has started it meanwhile.
fn start(py: Python<'_>) -> PyResult<Arc<SessionHandle>> {
    let blocker = ForkBlocker::to_open(py)?;
    let origin = origin(py, "Session", None)?;
    let mut process = process();
    if let Some(handle) = &process.handle {
        return Ok(Arc::clone(handle));
    }
    let seed = process.seed.unwrap_or_else(random_seed);
    let handle = SessionHandle::embedded(py, &blocker, origin, process.workers, seed)?;
    process.handle = Some(Arc::clone(&handle));
    Ok(handle)
}

/// Returns the session that this thread uses.
pub fn used(py: Python<'_>) -> UsedSession {
    let own = THREAD.with_borrow(|thread| match (thread.blocks.last(), &thread.connection) {
        (Some(WithBlock { handle, closes }), _) => {
            Some(UsedSession::Block { handle: Arc::clone(handle), closes: *closes })
        }
        (None, Some(handle)) => Some(UsedSession::Own(Arc::clone(handle))),
        (None, None) => None,
    });
    own.unwrap_or_else(|| {
        let handle = process().handle.clone();
        match handle {
            Some(handle) if exit::is_main_thread(py) => UsedSession::Main(handle),
            Some(handle) => UsedSession::Shared(handle),
            None => UsedSession::Nothing,
        }
    })
}

/// Returns the error for a new tensor without an open session.
fn closed() -> PyErr {
    Python::attach(|py| {
        if let Err(error) = exit::refuse(py) {
            return error;
        }
        let hint = "call gt.connect(...), or compute inside `with gt.Session(...):`";
        PyConnectionError::new_err(match used(py) {
            UsedSession::Block { handle, .. } => format!(
                "the session of this `with` block is closed ({})\n  hint: open another with gt.Session(...)",
                handle.place()
            ),
            UsedSession::Own(handle) => {
                format!("this thread disconnected from {}\n  hint: {hint}", handle.left_target())
            }
            UsedSession::Main(handle) => format!(
                "this thread disconnected from {}\n  hint: {hint}; gt.gpu_workers(n) lets the next tensor start workers in this process",
                handle.left_target()
            ),
            UsedSession::Shared(handle) => format!(
                "this thread uses the main thread's session, which disconnected from {}\n  hint: {hint}",
                handle.left_target()
            ),
            UsedSession::Nothing => "the session was closed at this moment".into(),
        })
    })
}

/// Sets the session that this thread uses outside of blocks. The previous one ends with its last
/// tensor.
pub fn set(py: Python<'_>, handle: Arc<SessionHandle>) {
    let before = if exit::is_main_thread(py) {
        process().handle.replace(handle)
    } else {
        THREAD.with_borrow_mut(|thread| thread.connection.replace(handle))
    };
    if let Some(before) = before {
        handle::release(py, before);
    }
}

/// Selects a session for this thread until [`leave`].
pub fn enter(handle: Arc<SessionHandle>, closes: bool) {
    THREAD.with_borrow_mut(|thread| thread.blocks.push(WithBlock { handle, closes }));
}

/// Removes the innermost block of a session. Blocks in generators may end in any order.
pub fn leave(py: Python<'_>, handle: &Arc<SessionHandle>) -> PyResult<()> {
    let block = THREAD.with_borrow_mut(|thread| {
        let index = thread.blocks.iter().rposition(|block| Arc::ptr_eq(&block.handle, handle))?;
        Some(thread.blocks.remove(index))
    });
    let block = block.ok_or_else(|| {
        PyRuntimeError::new_err(format!(
            "a block of session {} ({}) ends in a thread that is not in it\n  hint: leave a `with` block in the thread that has entered it",
            handle.number(),
            handle.place()
        ))
    })?;
    handle::release(py, block.handle);
    Ok(())
}

/// Returns the seed for a session that this thread opens now.
pub fn seed() -> u64 {
    let own = THREAD.with_borrow(|thread| thread.seed);
    own.or_else(|| process().seed).unwrap_or_else(random_seed)
}

/// Seeds the random numbers of this thread's session. Outside of blocks, later sessions start with
/// the seed, too: those of this thread if it has connected, else those of all threads.
pub fn set_seed(py: Python<'_>, seed: u64) {
    let used = used(py);
    match &used {
        UsedSession::Block { .. } => {}
        UsedSession::Own(_) => THREAD.with_borrow_mut(|thread| thread.seed = Some(seed)),
        UsedSession::Main(_) | UsedSession::Shared(_) | UsedSession::Nothing => {
            process().seed = Some(seed)
        }
    }
    if let Some(handle) = used.handle() {
        handle.seed(seed);
    }
}

/// In the child of a fork: turns the forking thread's own session and seed into those of the
/// process.
pub fn become_main_thread() {
    let (connection, seed) =
        THREAD.with_borrow_mut(|thread| (thread.connection.take(), thread.seed.take()));
    let mut process = process();
    process.seed = seed.or(process.seed);
    if connection.is_some() {
        // The session of the parent's process continues there; this copy of its handle is leaked.
        std::mem::forget(std::mem::replace(&mut process.handle, connection));
    }
}

/// Returns an unpredictable seed, for programs that set none.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) >> 1
}
