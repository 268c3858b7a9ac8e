//! The session that this process uses: embedded by default, or connected.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::Duration;

use gt::worker::Work;
use gt::{ClientError, Session, Tensor};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::engine;
use crate::error::{IntoPython, to_python};
use crate::notice::Notice;

struct Current {
    session: Option<Session>,
    /// Workers of an embedded session, as asked for by `gpu_workers`; else one for each GPU.
    workers: Option<usize>,
    /// As asked for by `manual_seed`.
    seed: Option<u64>,
}

static CURRENT: Mutex<Current> = Mutex::new(Current { session: None, workers: None, seed: None });

/// Whoever starts a session may load an engine, and needs Python's lock for it: others wait without.
/// It is taken with Python's lock only, so that none has it at a fork who is not starting one.
fn lock() -> MutexGuard<'static, Current> {
    loop {
        match CURRENT.try_lock() {
            Ok(current) => return current,
            Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                Python::attach(|py| py.detach(|| thread::sleep(Duration::from_micros(50))));
            }
        }
    }
}

/// Whether a session is being started, and whether the process is about to fork.
static STARTING: AtomicBool = AtomicBool::new(false);
static FORKING: AtomicBool = AtomicBool::new(false);

/// While this lives, forks wait.
struct Starting;

impl Starting {
    fn new(py: Python<'_>) -> Starting {
        loop {
            STARTING.store(true, Ordering::SeqCst);
            if !FORKING.load(Ordering::SeqCst) {
                return Starting;
            }
            STARTING.store(false, Ordering::SeqCst);
            py.detach(|| thread::sleep(Duration::from_micros(50)));
        }
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        STARTING.store(false, Ordering::SeqCst);
    }
}

/// Before a fork sessions come to an end of what they do. Engines in Python need Python's lock for
/// it, which the forking thread holds when the runtimes' own hook comes.
#[pyfunction]
fn before_fork(py: Python<'_>) {
    FORKING.store(true, Ordering::SeqCst);
    py.detach(|| {
        while STARTING.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_micros(50));
        }
        gt::drivers::embedded::fork::hold_all();
    });
}

#[pyfunction]
fn after_fork_in_parent(py: Python<'_>) {
    py.detach(gt::drivers::embedded::fork::release_all);
    FORKING.store(false, Ordering::SeqCst);
}

#[pyfunction]
fn after_fork_in_child() {
    FORKING.store(false, Ordering::SeqCst);
}

/// The session that new tensors belong to; starts an embedded one where there is none.
pub fn current() -> PyResult<Session> {
    if let Some(session) = &lock().session {
        return Ok(session.clone());
    }
    let _starting = Python::attach(Starting::new);
    let mut current = lock();
    if let Some(session) = &current.session {
        return Ok(session.clone());
    }
    let workers = match current.workers {
        Some(workers) => workers,
        None => Python::attach(engine::default_workers)?,
    };
    let session = match engine::embedded_engines(workers)? {
        None => gt::embedded(workers).py()?,
        Some(engines) => {
            let engines = Mutex::new(engines.into_iter());
            let next = |name: String, _: usize| -> Box<dyn Work> {
                let engine = engines.lock().ok().and_then(|mut engines| engines.next());
                gt::worker_on(name, engine.expect("one for each worker"))
            };
            gt::embedded_with(workers, &next).py()?
        }
    };
    session.manual_seed(current.seed.unwrap_or_else(random_seed));
    current.session = Some(session.clone());
    Ok(session)
}

/// A seed nobody knows, for programs that set none.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) >> 1
}

/// Runs what may wait for a session, without the GIL; a signal such as Ctrl-C ends the wait.
pub fn waiting<T: Send>(
    py: Python<'_>,
    session: &Session,
    wait: impl Send + FnOnce(&mut dyn FnMut() -> bool) -> gt::Result<T>,
) -> PyResult<T> {
    let mut raised = None;
    let (result, _inside) = py.detach(|| {
        let mut notice = Notice::new();
        let mut interrupt = || match Python::attach(|py| py.check_signals()) {
            Ok(()) => {
                notice.look(session);
                false
            }
            Err(error) => {
                raised = Some(error);
                true
            }
        };
        // With Python's lock comes what was left to be dropped, engines' tensors among it.
        (wait(&mut interrupt), engine::Inside::enter())
    });
    match (result, raised) {
        (Err(ClientError::Interrupted), Some(error)) => Err(error),
        (result, _) => result.or_else(|error| at_exit(py, error)),
    }
}

/// The process is ending, and with it the session under the feet of other threads.
static EXITING: AtomicBool = AtomicBool::new(false);

/// An error for Python; but at the end of the process, where Python's own threads just stop,
/// one that lost its session stops, too, instead of complaining.
pub fn at_exit<T>(py: Python<'_>, error: ClientError) -> PyResult<T> {
    let main = py
        .import("threading")
        .and_then(|threading| {
            Ok((threading.call_method0("main_thread")?, threading.call_method0("current_thread")?))
        })
        .map_or(true, |(main, current)| main.is(&current));
    if EXITING.load(Ordering::SeqCst) && !main && matches!(error, ClientError::Connection(_)) {
        py.detach(|| {
            loop {
                std::thread::park();
            }
        })
    }
    Err(to_python(error))
}

/// Ends the session for good, at the end of the process.
#[pyfunction]
fn end_process(py: Python<'_>) {
    if let Some(open) = gt::signal::name(gt::signal::innermost().signal) {
        tracing::warn!("the signal scope '{open}' was entered and never left");
    }
    EXITING.store(true, Ordering::SeqCst);
    disconnect(py);
    py.detach(engine::close_engines);
}

/// Waits for room in the window, if there is none; called before each instruction.
pub fn throttle(py: Python<'_>, session: &Session) -> PyResult<()> {
    if session.is_full() {
        waiting(py, session, |interrupt| session.wait_for_room(interrupt))?;
    }
    Ok(())
}

/// Waits until a tensor's session is ready to take an instruction.
pub fn ready(py: Python<'_>, tensor: &Tensor) -> PyResult<()> {
    if tensor.session_is_full() {
        throttle(py, &tensor.session())?;
    }
    Ok(())
}

/// The session of a tensor, ready to take an instruction.
pub fn ready_session(py: Python<'_>, tensor: &Tensor) -> PyResult<Session> {
    ready(py, tensor)?;
    Ok(tensor.session())
}

/// The current session, ready to take an instruction.
pub fn ready_current(py: Python<'_>) -> PyResult<Session> {
    let session = current()?;
    throttle(py, &session)?;
    Ok(session)
}

/// Sets how many workers the embedded session will have.
#[pyfunction]
fn gpu_workers(count: i64) -> PyResult<()> {
    let count = usize::try_from(count).ok().filter(|&count| count > 0).ok_or_else(|| {
        PyValueError::new_err(format!("gpu_workers: at least one worker is needed, {count} given"))
    })?;
    let mut current = lock();
    if let Some(session) = &current.session {
        return Err(PyRuntimeError::new_err(format!(
            "gpu_workers: the session has started already ({})\n  hint: call gt.gpu_workers({count}) before the first tensor",
            session.describe()
        )));
    }
    current.workers = Some(count);
    Ok(())
}

/// Ends the session; the next tensor starts another.
#[pyfunction]
fn disconnect(py: Python<'_>) {
    let session = lock().session.take();
    if let Some(session) = session {
        py.detach(|| session.close());
    }
}

/// Makes a session the current one; the one before ends when its last tensor is gone.
pub fn replace(py: Python<'_>, session: Session) {
    let mut current = lock();
    session.manual_seed(current.seed.unwrap_or_else(random_seed));
    let before = current.session.replace(session);
    drop(current);
    py.detach(|| drop(before));
}

/// Starts the random numbers anew: the same seed gives the same numbers.
#[pyfunction]
fn manual_seed(seed: &Bound<'_, PyAny>) -> PyResult<()> {
    let whole: Bound<'_, PyInt> = seed.cast::<PyInt>().cloned().map_err(|_| {
        PyTypeError::new_err(format!("manual_seed: {seed} given, expected a whole number"))
    })?;
    // Negative seeds count from the end of the unsigned ones, as in PyTorch.
    let bits = whole.extract::<u64>().or_else(|_| whole.extract::<i64>().map(|seed| seed as u64));
    let bits = bits.map_err(|_| {
        PyValueError::new_err(format!("manual_seed: {seed} given, expected -2**63 to 2**64 - 1"))
    })?;
    let mut current = lock();
    current.seed = Some(bits);
    if let Some(session) = &current.session {
        session.manual_seed(bits);
    }
    Ok(())
}

/// What the session is connected to, or None before the first tensor.
#[pyfunction]
fn describe_session() -> Option<String> {
    lock().session.as_ref().map(Session::describe)
}

/// Waits until all that was issued is computed.
#[pyfunction]
fn synchronize(py: Python<'_>) -> PyResult<()> {
    let session = lock().session.clone();
    if let Some(session) = session {
        waiting(py, &session, |interrupt| session.worker_stats(interrupt))?;
    }
    Ok(())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(gpu_workers, module)?)?;
    module.add_function(wrap_pyfunction!(disconnect, module)?)?;
    module.add_function(wrap_pyfunction!(end_process, module)?)?;
    module.add_function(wrap_pyfunction!(before_fork, module)?)?;
    module.add_function(wrap_pyfunction!(after_fork_in_parent, module)?)?;
    module.add_function(wrap_pyfunction!(after_fork_in_child, module)?)?;
    module.add_function(wrap_pyfunction!(manual_seed, module)?)?;
    module.add_function(wrap_pyfunction!(describe_session, module)?)?;
    module.add_function(wrap_pyfunction!(synchronize, module)?)
}
