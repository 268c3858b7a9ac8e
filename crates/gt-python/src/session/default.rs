//! The functions about the session that a thread uses outside of `with` blocks.

use std::path::PathBuf;
use std::sync::Arc;

use gt::ir::Rescale;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyInt;

use super::current::{self, UsedSession};
use super::fork::ForkBlocker;
use super::handle::SessionHandle;
use super::wait;
use crate::error::IntoPython;

/// Connects to a server: new tensors of this thread are made there from now on.
///
/// Threads that have not connected use what the main thread has connected to. Tensors that are
/// there already stay with their session, which ends with the last of them.
///
///     gt.connect("localhost:12345")
///
/// Args:
///     address: the server, as `HOST:PORT` or `ipc:///PATH`.
///     key_file: file with the key for the server, instead of `GT_KEY` or the one that is found.
///     insecure: the server was started with `--insecure`.
///     slots: how many parts tensors are cut into, whatever workers there are; None for as many as
///         there are workers when something is first cut.
///     elastic: whether each worker that joins later adds a slot, which changes the order of sums.
///
/// Raises:
///     ConnectionError: the address is not valid, nothing answers there, or the key is refused.
///     RuntimeError: called inside a `with` block of a session.
///     ValueError: the number of slots is not from 1 to 4096.
#[pyfunction]
#[pyo3(signature = (address, key_file=None, insecure=false, slots=None, elastic=None))]
fn connect(
    py: Python<'_>,
    address: &str,
    key_file: Option<PathBuf>,
    insecure: bool,
    slots: Option<i64>,
    elastic: Option<bool>,
) -> PyResult<()> {
    refuse_in_block(py, "connect", &format!("open `with gt.Session('{address}'):` inside it"))?;
    let slots = slots.map(|count| slot_count("connect", count)).transpose()?;
    let handle = open_connection(py, address, key_file, insecure)?;
    set_slots(&handle, slots, elastic)?;
    current::set(py, handle);
    Ok(())
}

/// A number of slots, from 1 to 4096.
pub fn slot_count(name: &str, count: i64) -> PyResult<u32> {
    let most = Rescale::MOST;
    Rescale::count(count).ok_or_else(|| {
        PyValueError::new_err(format!("{name}: a session has 1 to {most} slots, {count} given"))
    })
}

/// Tells a session how many slots it has, if that is given.
pub fn set_slots(
    handle: &SessionHandle,
    slots: Option<u32>,
    elastic: Option<bool>,
) -> PyResult<()> {
    match handle.session().filter(|_| slots.is_some() || elastic.is_some()) {
        Some(session) => session.rescale(slots, elastic).py(),
        None => Ok(()),
    }
}

/// Sets how many slots tensors of this thread's session are cut over from now on.
///
/// A session keeps its number of slots whatever workers come and go, so that its results stay the
/// same to the last bit. With another number, sums may be added in another order.
///
///     gt.rescale(4)  # four workers are there now
///
/// Args:
///     slots: how many parts tensors are cut into; those that are there stay as they are.
///     elastic: whether each worker that joins later adds a slot; None for no change.
///
/// Raises:
///     ConnectionError: the session is closed.
///     ValueError: the number of slots is not from 1 to 4096.
#[pyfunction]
#[pyo3(signature = (slots=None, elastic=None))]
fn rescale(py: Python<'_>, slots: Option<i64>, elastic: Option<bool>) -> PyResult<()> {
    if slots.is_none() && elastic.is_none() {
        return Err(PyTypeError::new_err(
            "rescale: neither slots nor elastic is given\n  hint: gt.rescale(4)",
        ));
    }
    let slots = slots.map(|count| slot_count("rescale", count)).transpose()?;
    let handle = current::handle(py)?;
    set_slots(&handle, slots, elastic)
}

/// A session on a server.
pub fn open_connection(
    py: Python<'_>,
    address: &str,
    key_file: Option<PathBuf>,
    insecure: bool,
) -> PyResult<Arc<SessionHandle>> {
    let seed = current::seed();
    let blocker = ForkBlocker::to_open(py)?;
    SessionHandle::connect(py, &blocker, address, key_file.as_deref(), insecure, seed)
}

/// Ends this thread's session: its tensors are gone, and a new tensor is an error.
///
/// It ends what this thread has connected to, or the session of the `with gt.Session(...)` block
/// around it; in the main thread also the one that its first tensor has started. Where there is
/// nothing to end, or nothing any more, it does nothing. `gt.connect(...)`, `gt.Session(...)` or,
/// for workers in this process, `gt.gpu_workers(n)` begin anew.
///
/// Raises:
///     RuntimeError: the session is not this thread's, but the main thread's or that of a block
///         with `session.use()`.
#[pyfunction]
fn disconnect(py: Python<'_>) -> PyResult<()> {
    let (handle, whose) = match current::used(py) {
        UsedSession::Nothing => return Ok(()),
        UsedSession::Block { handle, closes: true }
        | UsedSession::Own(handle)
        | UsedSession::Main(handle) => {
            handle.close(py);
            return Ok(());
        }
        UsedSession::Block { handle, closes: false } => {
            (handle, "this `with` block uses a session that others have opened")
        }
        UsedSession::Shared(handle) => {
            (handle, "this thread has not connected, and uses the main thread's session")
        }
    };
    if handle.is_closed() {
        return Ok(());
    }
    Err(PyRuntimeError::new_err(format!(
        "disconnect: {whose} ({})\n  hint: gt.current_session().close() ends it for all who use it",
        handle.place()
    )))
}

/// Sets how many workers a program without a connection has in its own process.
///
/// They start with the next tensor of a thread that has not connected. After `gt.disconnect()`
/// this begins anew.
///
/// Raises:
///     RuntimeError: the session has started already, this thread has connected, or it is inside
///         a `with` block of a session.
///     ValueError: no worker is asked for.
#[pyfunction]
fn gpu_workers(py: Python<'_>, count: i64) -> PyResult<()> {
    let workers = worker_count("gpu_workers", count)?;
    let instead = format!("use `with gt.Session(workers={count}):`");
    refuse_in_block(py, "gpu_workers", &instead)?;
    if let UsedSession::Own(handle) = current::used(py) {
        return Err(PyRuntimeError::new_err(format!(
            "gpu_workers: this thread has a session of its own ({}), and does not use that of the process\n  hint: {instead}",
            handle.place()
        )));
    }
    let mut process = current::process();
    if let Some(handle) = process.handle.as_ref().filter(|handle| !handle.is_closed()) {
        return Err(PyRuntimeError::new_err(format!(
            "gpu_workers: the session has started already ({})\n  hint: call gt.gpu_workers({count}) before the first tensor, or {instead}",
            handle.place()
        )));
    }
    process.workers = Some(workers);
    process.handle = None;
    Ok(())
}

/// A number of workers, from 1 on.
pub fn worker_count(name: &str, count: i64) -> PyResult<usize> {
    usize::try_from(count).ok().filter(|&count| count > 0).ok_or_else(|| {
        PyValueError::new_err(format!("{name}: at least one worker is needed, {count} given"))
    })
}

/// ExitGuard a block nothing would come of a change outside.
fn refuse_in_block(py: Python<'_>, name: &str, instead: &str) -> PyResult<()> {
    let UsedSession::Block { handle, .. } = current::used(py) else { return Ok(()) };
    Err(PyRuntimeError::new_err(format!(
        "{name}: this is inside a `with` block of session {} ({}), and would have no effect in it\n  hint: leave the block first, or {instead}",
        handle.number(),
        handle.place()
    )))
}

/// Starts the random numbers of this thread's session anew: the same seed gives the same numbers.
///
/// Outside of `with` blocks, sessions that are opened later begin with the seed, too: those of this
/// thread if it has connected, else all.
#[pyfunction]
fn manual_seed(py: Python<'_>, seed: &Bound<'_, PyAny>) -> PyResult<()> {
    current::set_seed(py, parse_seed(seed)?);
    Ok(())
}

/// The seed of this thread's session, and how many random operations it has issued since it was
/// set.
#[pyfunction]
fn random_state(py: Python<'_>) -> PyResult<(u64, u64)> {
    Ok(wait::ready_current(py)?.random_state())
}

/// Has the random numbers of this thread's session go on from where `random_state` was.
#[pyfunction]
fn set_random_state(py: Python<'_>, seed: u64, issued: u64) -> PyResult<()> {
    current::set_seed(py, seed);
    wait::ready_current(py)?.set_random_state(seed, issued);
    Ok(())
}

/// The seed and the number of this thread's session's next random operation.
#[pyfunction]
fn next_random(py: Python<'_>) -> PyResult<(u64, u64)> {
    Ok(wait::ready_current(py)?.next_random())
}

/// Negative seeds count from the end of the unsigned ones, as in PyTorch.
pub fn parse_seed(seed: &Bound<'_, PyAny>) -> PyResult<u64> {
    let whole: Bound<'_, PyInt> = seed.cast::<PyInt>().cloned().map_err(|_| {
        PyTypeError::new_err(format!("manual_seed: {seed} given, expected a whole number"))
    })?;
    let bits = whole.extract::<u64>().or_else(|_| whole.extract::<i64>().map(|seed| seed as u64));
    bits.map_err(|_| {
        PyValueError::new_err(format!("manual_seed: {seed} given, expected -2**63 to 2**64 - 1"))
    })
}

/// Waits until all is computed that was issued to this thread's session, if it has one.
///
/// Raises:
///     ConnectionError: the server is gone.
#[pyfunction]
fn synchronize(py: Python<'_>) -> PyResult<()> {
    let session = match current::used(py) {
        UsedSession::Nothing => None,
        UsedSession::Block { handle, .. }
        | UsedSession::Own(handle)
        | UsedSession::Main(handle)
        | UsedSession::Shared(handle) => handle.session(),
    };
    session.map_or(Ok(()), |session| wait::synchronize(py, &session))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(connect, module)?)?;
    module.add_function(wrap_pyfunction!(disconnect, module)?)?;
    module.add_function(wrap_pyfunction!(gpu_workers, module)?)?;
    module.add_function(wrap_pyfunction!(rescale, module)?)?;
    module.add_function(wrap_pyfunction!(manual_seed, module)?)?;
    module.add_function(wrap_pyfunction!(random_state, module)?)?;
    module.add_function(wrap_pyfunction!(set_random_state, module)?)?;
    module.add_function(wrap_pyfunction!(next_random, module)?)?;
    module.add_function(wrap_pyfunction!(synchronize, module)?)
}
