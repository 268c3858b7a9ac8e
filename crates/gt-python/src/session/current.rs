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
use super::fork::Changing;
use super::handle::{self, Handle};
use super::wait::detached;
use crate::source;

/// What threads use that have not connected.
pub struct Process {
    pub handle: Option<Arc<Handle>>,
    /// Workers of an embedded session, as asked for by `gpu_workers`; else one for each GPU.
    pub workers: Option<usize>,
    /// As asked for by `manual_seed`.
    pub seed: Option<u64>,
}

static PROCESS: Mutex<Process> = Mutex::new(Process { handle: None, workers: None, seed: None });

/// What is a thread's own.
struct Own {
    /// The innermost last.
    blocks: Vec<Block>,
    /// Of a thread other than the main one: what it has connected to, even after it disconnected.
    connection: Option<Arc<Handle>>,
    /// As asked for by `manual_seed` since it connected.
    seed: Option<u64>,
}

struct Block {
    handle: Arc<Handle>,
    /// Its end is the session's.
    closes: bool,
}

thread_local! {
    static OWN: RefCell<Own> =
        const { RefCell::new(Own { blocks: Vec::new(), connection: None, seed: None }) };
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

/// Notes a session that a kernel computes in. A backward pass, whose threads run no code of a user's
/// that could say in which session, goes on in the one that was noted last.
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
pub enum Used {
    Block {
        handle: Arc<Handle>,
        closes: bool,
    },
    /// What a thread other than the main one has connected to.
    Own(Arc<Handle>),
    /// The process's, used by the main thread.
    Main(Arc<Handle>),
    /// The process's, used by another thread.
    Shared(Arc<Handle>),
    /// The process's, which was not started yet.
    Nothing,
}

/// Whoever starts a session may load an engine, and needs Python's lock for it: others wait without.
/// It is taken with Python's lock only, so that none has it at a fork who is not starting one.
pub fn process() -> MutexGuard<'static, Process> {
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

impl Own {
    fn handle(&self) -> Option<&Arc<Handle>> {
        self.blocks.last().map(|block| &block.handle).or(self.connection.as_ref())
    }
}

/// The session that new tensors belong to; starts an embedded one where there is none.
pub fn current() -> PyResult<Session> {
    if let Some(session) = OPERANDS.with_borrow(Clone::clone) {
        return Ok(session);
    }
    if source::is_foreign()
        && let Some(session) = latest().as_ref().and_then(WeakSession::upgrade)
        && !session.is_closed()
    {
        return Ok(session);
    }
    let found = OWN.with_borrow(|own| own.handle().map(|handle| handle.session()));
    let found = found.or_else(|| process().handle.as_ref().map(|handle| handle.session()));
    match found {
        Some(Some(session)) => Ok(session),
        Some(None) => Err(closed()),
        None => Python::attach(start)?.session().ok_or_else(closed),
    }
}

/// The handle of the session that new tensors belong to.
pub fn handle(py: Python<'_>) -> PyResult<Arc<Handle>> {
    let handle = match used(py) {
        Used::Nothing => start(py)?,
        Used::Block { handle, .. }
        | Used::Own(handle)
        | Used::Main(handle)
        | Used::Shared(handle) => handle,
    };
    if handle.is_closed() { Err(closed()) } else { Ok(handle) }
}

/// Starts the process's session, if nobody else has meanwhile.
fn start(py: Python<'_>) -> PyResult<Arc<Handle>> {
    let changing = Changing::to_open(py)?;
    let mut process = process();
    if let Some(handle) = &process.handle {
        return Ok(Arc::clone(handle));
    }
    let seed = process.seed.unwrap_or_else(random_seed);
    let handle = Handle::embedded(py, &changing, process.workers, seed)?;
    process.handle = Some(Arc::clone(&handle));
    Ok(handle)
}

/// The session that this thread uses.
pub fn used(py: Python<'_>) -> Used {
    let own = OWN.with_borrow(|own| match (own.blocks.last(), &own.connection) {
        (Some(Block { handle, closes }), _) => {
            Some(Used::Block { handle: Arc::clone(handle), closes: *closes })
        }
        (None, Some(handle)) => Some(Used::Own(Arc::clone(handle))),
        (None, None) => None,
    });
    own.unwrap_or_else(|| {
        let handle = process().handle.clone();
        match handle {
            Some(handle) if exit::is_main_thread(py) => Used::Main(handle),
            Some(handle) => Used::Shared(handle),
            None => Used::Nothing,
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
            Used::Block { handle, .. } => format!(
                "the session of this `with` block is closed ({})\n  hint: open another with gt.Session(...)",
                handle.place()
            ),
            Used::Own(handle) => {
                format!("this thread disconnected from {}\n  hint: {hint}", handle.end())
            }
            Used::Main(handle) => format!(
                "this thread disconnected from {}\n  hint: {hint}; gt.gpu_workers(n) lets the next tensor start workers in this process",
                handle.end()
            ),
            Used::Shared(handle) => format!(
                "this thread uses the main thread's session, which disconnected from {}\n  hint: {hint}",
                handle.end()
            ),
            Used::Nothing => "the session was closed at this moment".into(),
        })
    })
}

/// Makes a session the one that this thread uses outside of blocks. The one before ends with its
/// last tensor.
pub fn set(py: Python<'_>, handle: Arc<Handle>) {
    let before = if exit::is_main_thread(py) {
        process().handle.replace(handle)
    } else {
        OWN.with_borrow_mut(|own| own.connection.replace(handle))
    };
    if let Some(before) = before {
        handle::release(py, before);
    }
}

/// Has this thread use a session until [`leave`].
pub fn enter(handle: Arc<Handle>, closes: bool) {
    OWN.with_borrow_mut(|own| own.blocks.push(Block { handle, closes }));
}

/// Takes the innermost block with a session away: blocks of generators may end in any order.
pub fn leave(py: Python<'_>, handle: &Arc<Handle>) -> PyResult<()> {
    let block = OWN.with_borrow_mut(|own| {
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
    let own = OWN.with_borrow(|own| own.seed);
    own.or_else(|| process().seed).unwrap_or_else(random_seed)
}

/// Starts the random numbers of this thread's session anew. Outside of blocks the seed is remembered
/// for sessions that are opened later: by this thread, or by all if the session is the process's.
pub fn set_seed(py: Python<'_>, seed: u64) {
    let used = used(py);
    match &used {
        Used::Block { .. } => {}
        Used::Own(_) => OWN.with_borrow_mut(|own| own.seed = Some(seed)),
        Used::Main(_) | Used::Shared(_) | Used::Nothing => process().seed = Some(seed),
    }
    match used {
        Used::Nothing => {}
        Used::Block { handle, .. }
        | Used::Own(handle)
        | Used::Main(handle)
        | Used::Shared(handle) => handle.seed(seed),
    }
}

/// In the child of a fork: what the forking thread has of its own is the process's from now on.
pub fn become_main_thread() {
    let (connection, seed) = OWN.with_borrow_mut(|own| (own.connection.take(), own.seed.take()));
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
