//! Which session a thread uses: that of the innermost `with` block it is in, else the one it has
//! connected to, else the process's, which the main thread connects to or the first tensor starts.
//! A kernel of PyTorch's uses its operands'.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use gt::{Session, WeakSession};
use pyo3::exceptions::{PyConnectionError, PyRuntimeError};
use pyo3::prelude::*;

use super::exit;
use super::fork::ForkBlocker;
use super::handle::{self, SessionHandle};
use super::wait::detached;
use crate::source;

/// What threads use that have not connected.
pub struct ProcessSession {
    pub handle: Option<Arc<SessionHandle>>,
    /// Workers of an embedded session, as asked for by `gpu_workers`; else one for each GPU.
    pub workers: Option<usize>,
    /// As asked for by `manual_seed`.
    pub seed: Option<u64>,
}

static PROCESS: Mutex<ProcessSession> =
    Mutex::new(ProcessSession { handle: None, workers: None, seed: None });

/// What is a thread's own.
struct ThreadSessions {
    /// The innermost last.
    blocks: Vec<WithBlock>,
    /// Of a thread other than the main one: what it has connected to, even after it disconnected.
    connection: Option<Arc<SessionHandle>>,
    /// As asked for by `manual_seed` since it connected.
    seed: Option<u64>,
}

struct WithBlock {
    handle: Arc<SessionHandle>,
    /// Its end is the session's.
    closes: bool,
}

thread_local! {
    static THREAD: RefCell<ThreadSessions> =
        const { RefCell::new(ThreadSessions { blocks: Vec::new(), connection: None, seed: None }) };
}

thread_local! {
    /// The session of the operands of the kernel that runs.
    static OPERANDS: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// The session that a kernel has computed in last, on any thread, and its number.
static LATEST: Mutex<Option<WeakSession>> = Mutex::new(None);
static LATEST_NUMBER: AtomicU64 = AtomicU64::new(0);

/// Runs a function that makes its new tensors in a session.
pub fn within<T>(session: Session, function: impl FnOnce() -> T) -> T {
    struct Restore(Option<Session>);
    impl Drop for Restore {
        fn drop(&mut self) {
            OPERANDS.set(self.0.take());
        }
    }
    let _restore = Restore(OPERANDS.replace(Some(session)));
    function()
}

/// Notes a session that a kernel computes in. A backward pass, whose threads run no code of a
/// user's that could say in which session, goes on in the one that was noted last.
pub fn note(session: &Session) {
    if LATEST_NUMBER.load(Ordering::Relaxed) != session.number() {
        *latest() = Some(session.downgrade());
        LATEST_NUMBER.store(session.number(), Ordering::Relaxed);
    }
}

fn latest() -> MutexGuard<'static, Option<WeakSession>> {
    LATEST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The session that a thread uses, closed or not, and whose it is.
pub enum UsedSession {
    Block {
        handle: Arc<SessionHandle>,
        closes: bool,
    },
    /// What a thread other than the main one has connected to.
    Own(Arc<SessionHandle>),
    /// The process's, used by the main thread.
    Main(Arc<SessionHandle>),
    /// The process's, used by another thread.
    Shared(Arc<SessionHandle>),
    /// The process's, which was not started yet.
    Nothing,
}

/// Whoever starts a session may load an engine, and needs Python's lock for it: others wait
/// without. It is taken with Python's lock only, so that none has it at a fork who is not starting
/// one.
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

/// The session that new tensors belong to; starts an embedded one where there is none.
pub fn current() -> PyResult<Session> {
    if let Some(session) = OPERANDS.with_borrow(Clone::clone) {
        return Ok(session);
    }
    if source::runs_no_user_code()
        && let Some(session) = latest().as_ref().and_then(WeakSession::upgrade)
        && !session.is_closed()
    {
        return Ok(session);
    }
    let found = THREAD.with_borrow(|own| own.handle().map(|handle| handle.session()));
    let found = found.or_else(|| process().handle.as_ref().map(|handle| handle.session()));
    match found {
        Some(Some(session)) => Ok(session),
        Some(None) => Err(closed()),
        None => Python::attach(start)?.session().ok_or_else(closed),
    }
}

/// The handle of the session that new tensors belong to.
pub fn handle(py: Python<'_>) -> PyResult<Arc<SessionHandle>> {
    let handle = match used(py) {
        UsedSession::Nothing => start(py)?,
        UsedSession::Block { handle, .. }
        | UsedSession::Own(handle)
        | UsedSession::Main(handle)
        | UsedSession::Shared(handle) => handle,
    };
    if handle.is_closed() { Err(closed()) } else { Ok(handle) }
}

/// Starts the process's session, if nobody else has meanwhile.
fn start(py: Python<'_>) -> PyResult<Arc<SessionHandle>> {
    let blocker = ForkBlocker::to_open(py)?;
    let mut process = process();
    if let Some(handle) = &process.handle {
        return Ok(Arc::clone(handle));
    }
    let seed = process.seed.unwrap_or_else(random_seed);
    let handle = SessionHandle::embedded(py, &blocker, process.workers, seed)?;
    process.handle = Some(Arc::clone(&handle));
    Ok(handle)
}

/// The session that this thread uses.
pub fn used(py: Python<'_>) -> UsedSession {
    let own = THREAD.with_borrow(|own| match (own.blocks.last(), &own.connection) {
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

/// Why there is no session for a new tensor.
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

/// Makes a session the one that this thread uses outside of blocks. The one before ends with its
/// last tensor.
pub fn set(py: Python<'_>, handle: Arc<SessionHandle>) {
    let before = if exit::is_main_thread(py) {
        process().handle.replace(handle)
    } else {
        THREAD.with_borrow_mut(|own| own.connection.replace(handle))
    };
    if let Some(before) = before {
        handle::release(py, before);
    }
}

/// Has this thread use a session until [`leave`].
pub fn enter(handle: Arc<SessionHandle>, closes: bool) {
    THREAD.with_borrow_mut(|own| own.blocks.push(WithBlock { handle, closes }));
}

/// Takes the innermost block with a session away: blocks of generators may end in any order.
pub fn leave(py: Python<'_>, handle: &Arc<SessionHandle>) -> PyResult<()> {
    let block = THREAD.with_borrow_mut(|own| {
        let place = own.blocks.iter().rposition(|block| Arc::ptr_eq(&block.handle, handle))?;
        Some(own.blocks.remove(place))
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

/// The seed of a session that this thread opens now.
pub fn seed() -> u64 {
    let own = THREAD.with_borrow(|own| own.seed);
    own.or_else(|| process().seed).unwrap_or_else(random_seed)
}

/// Starts the random numbers of this thread's session anew. Outside of blocks the seed is
/// remembered for sessions that are opened later: by this thread, or by all if the session is the
/// process's.
pub fn set_seed(py: Python<'_>, seed: u64) {
    let used = used(py);
    match &used {
        UsedSession::Block { .. } => {}
        UsedSession::Own(_) => THREAD.with_borrow_mut(|own| own.seed = Some(seed)),
        UsedSession::Main(_) | UsedSession::Shared(_) | UsedSession::Nothing => {
            process().seed = Some(seed)
        }
    }
    match used {
        UsedSession::Nothing => {}
        UsedSession::Block { handle, .. }
        | UsedSession::Own(handle)
        | UsedSession::Main(handle)
        | UsedSession::Shared(handle) => handle.seed(seed),
    }
}

/// In the child of a fork: what the forking thread has of its own is the process's from now on.
pub fn become_main_thread() {
    let (connection, seed) = THREAD.with_borrow_mut(|own| (own.connection.take(), own.seed.take()));
    let mut process = process();
    process.seed = seed.or(process.seed);
    if connection.is_some() {
        // The parent's goes on; this copy of it ends with the child.
        std::mem::forget(std::mem::replace(&mut process.handle, connection));
    }
}

/// A seed nobody knows, for programs that set none.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) >> 1
}
