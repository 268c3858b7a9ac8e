//! The functions that select and configure the session that a thread uses outside of `with` blocks.

use std::sync::Arc;

use gt::SessionOrigin;
use gt::ir::Rescale;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyInt;

use super::address::parse_server;
use super::current::{self, UsedSession};
use super::fork::ForkBlocker;
use super::handle::{ServerTarget, SessionHandle};
use super::origin::origin;
use super::wait;
use crate::argument;
use crate::error::IntoPython;

/// Connect to a server, which holds all tensors that this thread creates from now on.
///
/// Threads that have not connected use the session of the main thread. Existing tensors stay in
/// their session, which ends with the last of them.
///
///     gt.connect("localhost:12345")
///
/// Args:
///     address: the server, as `HOST:PORT`, `ipc:///PATH`, `file:///PATH` of a file in which it has
///         published its address, `ssh://LOGIN/HOST:PORT`, or `https://HOST` of its page; or a
///         `gt.cluster.Cluster`.
///     key_file: file with the key for the server, instead of `GT_KEY` or the one that is found.
///     insecure: the server was started with `--insecure`.
///     slots: the number of shards of sharded tensors, independent of the number of workers; None
///         for the number of workers when a tensor is first sharded.
///     elastic: whether each worker that joins later adds a slot, which changes the order of sums.
///     name: the session's name in `gt top`, logs and messages, as `run-12`; None for the name of
///         the script, module or notebook.
///
/// Raises:
///     ConnectionError: the address is not valid, nothing answers there, or the key is refused.
///     RuntimeError: called inside a `with` block of a session.
///     ValueError: the number of slots is not from 1 to 4096, or the name is empty, too long, or has
///         characters that cannot be shown.
#[pyfunction]
#[pyo3(
    signature = (address, key_file=None, insecure=None, slots=None, elastic=None, name=None),
    text_signature = "(address, key_file=None, insecure=False, slots=None, elastic=None, name=None)"
)]
fn connect(
    py: Python<'_>,
    address: Bound<'_, PyAny>,
    key_file: Option<Bound<'_, PyAny>>,
    insecure: Option<&Bound<'_, PyAny>>,
    slots: Option<&Bound<'_, PyAny>>,
    elastic: Option<&Bound<'_, PyAny>>,
    name: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let (address, key_file) = parse_server("connect", &address, key_file)?;
    refuse_in_block(py, "connect", &format!("open `with gt.Session('{address}'):` inside it"))?;
    let insecure = optional_flag("connect", "insecure", insecure)?.unwrap_or(false);
    let slots = slot_count("connect", slots)?;
    let elastic = optional_flag("connect", "elastic", elastic)?;
    let origin = origin(py, "connect", name)?;
    let server = ServerTarget { address, key_file, insecure };
    let handle = open_connection(py, origin, &server)?;
    set_slots(&handle, slots, elastic)?;
    current::set(py, handle);
    Ok(())
}

/// Returns a number of slots, which is from 1 to 4096, if one is given to the function `call`.
pub fn slot_count(call: &str, slots: Option<&Bound<'_, PyAny>>) -> PyResult<Option<u32>> {
    let Some(given) = slots else { return Ok(None) };
    let (count, most) = (argument::int(call, "slots", given)?, Rescale::MOST);
    let checked = Rescale::count(count).ok_or_else(|| {
        PyValueError::new_err(format!("{call}: a session has 1 to {most} slots, {count} given"))
    });
    checked.map(Some)
}

/// Returns an argument of the function `call` that is True or False, if it is given.
pub fn optional_flag(
    call: &str,
    name: &str,
    given: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<bool>> {
    given.map(|given| argument::flag(call, name, given)).transpose()
}

/// Sets the number of slots of a session, if it is given.
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

/// Set the number of slots over which this thread's session shards tensors from now on.
///
/// A session keeps its number of slots when workers join and leave, so that its results stay
/// bit-identical. Another number may change the order in which sums are added.
///
///     gt.rescale(4)  # four workers are connected now
///
/// Args:
///     slots: the number of shards of tensors sharded from now on; existing tensors stay as they
///         are.
///     elastic: whether each worker that joins later adds a slot; None for no change.
///
/// Raises:
///     ConnectionError: the session is closed.
///     ValueError: the number of slots is not from 1 to 4096.
#[pyfunction]
#[pyo3(signature = (slots=None, elastic=None))]
fn rescale(
    py: Python<'_>,
    slots: Option<&Bound<'_, PyAny>>,
    elastic: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    if slots.is_none() && elastic.is_none() {
        return Err(PyTypeError::new_err(
            "rescale: neither slots nor elastic is given\n  hint: gt.rescale(4)",
        ));
    }
    let slots = slot_count("rescale", slots)?;
    let elastic = optional_flag("rescale", "elastic", elastic)?;
    let handle = current::handle(py)?;
    set_slots(&handle, slots, elastic)
}

/// Opens a session on a server.
pub fn open_connection(
    py: Python<'_>,
    origin: SessionOrigin,
    server: &ServerTarget,
) -> PyResult<Arc<SessionHandle>> {
    let seed = current::seed();
    let blocker = ForkBlocker::to_open(py)?;
    SessionHandle::connect(py, &blocker, origin, server, seed)
}

/// End this thread's session: its tensors are lost, and creating a tensor is an error from then on.
///
/// The session is the one that this thread connected to, or that of the enclosing
/// `with gt.Session(...)` block; in the main thread also the one that its first tensor started. If
/// there is no open session, nothing happens. `gt.connect(...)`, `gt.Session(...)` or, for workers
/// in this process, `gt.gpu_workers(n)` start a new one.
///
/// Raises:
///     RuntimeError: the session belongs to the main thread, or the enclosing block uses an
///         existing session with `session.use()`.
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

/// Set the number of workers that a program without a connection runs in its own process.
///
/// They start with the next tensor of a thread that has not connected. After `gt.disconnect()`, a
/// call starts new workers.
///
/// Args:
///     count: the number.
///     name: the function that the user called.
///
/// Raises:
///     RuntimeError: the session has started already, this thread has connected, or the call is
///         inside a `with` block of a session.
///     ValueError: the number is less than 1.
#[pyfunction]
fn set_workers(py: Python<'_>, count: i64, name: &str) -> PyResult<()> {
    let workers = worker_count(name, count)?;
    let instead = format!("use `with gt.Session(workers={count}):`");
    refuse_in_block(py, name, &instead)?;
    if let UsedSession::Own(handle) = current::used(py) {
        return Err(PyRuntimeError::new_err(format!(
            "{name}: this thread has a session of its own ({}), and does not use that of the process\n  hint: {instead}",
            handle.place()
        )));
    }
    let mut process = current::process();
    if let Some(handle) = process.handle.as_ref().filter(|handle| !handle.is_closed()) {
        return Err(PyRuntimeError::new_err(format!(
            "{name}: the session has started already ({})\n  hint: call gt.{name}({count}) before the first tensor, or {instead}",
            handle.place()
        )));
    }
    process.workers = Some(workers);
    process.handle = None;
    Ok(())
}

/// Checks a number of workers, which is at least 1.
pub fn worker_count(name: &str, count: i64) -> PyResult<usize> {
    usize::try_from(count).ok().filter(|&count| count > 0).ok_or_else(|| {
        PyValueError::new_err(format!("{name}: at least one worker is needed, {count} given"))
    })
}

/// Returns an error inside a block, where a change of the session outside has no effect.
pub fn refuse_in_block(py: Python<'_>, name: &str, instead: &str) -> PyResult<()> {
    let UsedSession::Block { handle, .. } = current::used(py) else { return Ok(()) };
    Err(PyRuntimeError::new_err(format!(
        "{name}: this is inside a `with` block of session {} ({}), and would have no effect in it\n  hint: leave the block first, or {instead}",
        handle.number(),
        handle.place()
    )))
}

/// Seed the random numbers of this thread's session.
///
/// Outside of `with` blocks, sessions that are opened later start with the seed, too: those of this
/// thread if it has connected, else those of all threads.
#[pyfunction]
fn manual_seed(py: Python<'_>, seed: &Bound<'_, PyAny>) -> PyResult<()> {
    current::set_seed(py, parse_seed(seed)?);
    Ok(())
}

/// Return the seed of this thread's session, and how many random operations it has issued since the
/// seed was set.
#[pyfunction]
fn random_state(py: Python<'_>) -> PyResult<(u64, u64)> {
    Ok(wait::ready_current(py)?.random_state())
}

/// Restore the random state of this thread's session from the result of `random_state()`.
#[pyfunction]
fn set_random_state(py: Python<'_>, seed: u64, issued: u64) -> PyResult<()> {
    current::set_seed(py, seed);
    wait::ready_current(py)?.set_random_state(seed, issued);
    Ok(())
}

/// Return the seed and number of the next random operation of this thread's session, and count it
/// as issued.
#[pyfunction]
fn next_random(py: Python<'_>) -> PyResult<(u64, u64)> {
    Ok(wait::ready_current(py)?.next_random())
}

/// Returns a seed as 64 bits. Negative seeds wrap around, as in PyTorch.
pub fn parse_seed(seed: &Bound<'_, PyAny>) -> PyResult<u64> {
    let whole: Bound<'_, PyInt> = seed.cast::<PyInt>().cloned().map_err(|_| {
        PyTypeError::new_err(format!("manual_seed: the seed is {seed:?}, expected a whole number"))
    })?;
    let bits = whole.extract::<u64>().or_else(|_| whole.extract::<i64>().map(|seed| seed as u64));
    bits.map_err(|_| {
        PyValueError::new_err(format!("manual_seed: {seed} given, expected -2**63 to 2**64 - 1"))
    })
}

/// Wait until this thread's session, if there is one, has computed all issued instructions.
///
/// Raises:
///     ConnectionError: the server is gone.
#[pyfunction]
fn synchronize(py: Python<'_>) -> PyResult<()> {
    let session = current::used(py).handle().and_then(|handle| handle.session());
    session.map_or(Ok(()), |session| wait::synchronize(py, &session))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(connect, module)?)?;
    module.add_function(wrap_pyfunction!(disconnect, module)?)?;
    module.add_function(wrap_pyfunction!(set_workers, module)?)?;
    module.add_function(wrap_pyfunction!(rescale, module)?)?;
    module.add_function(wrap_pyfunction!(manual_seed, module)?)?;
    module.add_function(wrap_pyfunction!(random_state, module)?)?;
    module.add_function(wrap_pyfunction!(set_random_state, module)?)?;
    module.add_function(wrap_pyfunction!(next_random, module)?)?;
    module.add_function(wrap_pyfunction!(synchronize, module)?)
}
