//! The diagnostic tools, which connect to a dispatcher as watchers, and `gt.status()`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use gt::ClientError;
use gt::ir::entitlement::Entitlement;
use gt::ir::status::{
    SessionStatus, Status, TeamStatus, UserStatus, WINDOWS, Waits, WindowUse, WorkerStatus,
};
use gt_tools::ToolError;
use gt_tools::find::WatchTarget;
use gt_tools::top::TopOptions;
use gt_tools::visualize::{Format, Size};
use pyo3::exceptions::{PyConnectionError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::session;

pub(crate) fn to_python(error: ToolError) -> PyErr {
    let text = error.to_string();
    match error {
        ToolError::File { .. } => PyOSError::new_err(text),
        ToolError::BadLog { .. } | ToolError::EmptyLog { .. } | ToolError::BadOption(_) => {
            PyValueError::new_err(text)
        }
        ToolError::NobodyHere
        | ToolError::Several { .. }
        | ToolError::NoSuchProcess { .. }
        | ToolError::Link(_) => PyConnectionError::new_err(text),
    }
}

/// Record the events of a dispatcher into a log, for some seconds or until there are `limit`
/// events.
///
/// Returns:
///     The number of recorded events, the number of dropped events, the title of the dispatcher,
///     and why the recording ended early, or None.
#[pyfunction]
#[pyo3(signature = (path, seconds, limit=None, address=None, process=None, key_file=None, insecure=false))]
#[allow(clippy::too_many_arguments)] // One for each option of the command.
fn trace(
    py: Python<'_>,
    path: PathBuf,
    seconds: f64,
    limit: Option<usize>,
    address: Option<String>,
    process: Option<u32>,
    key_file: Option<PathBuf>,
    insecure: bool,
) -> PyResult<(usize, u64, String, Option<String>)> {
    let duration = Duration::try_from_secs_f64(seconds).map_err(|_| {
        PyValueError::new_err(format!("the duration is {seconds} s, expected 0 or more"))
    })?;
    let target = WatchTarget { address, process, key_file, insecure };
    let recorded = py.detach(|| {
        // Ctrl-C ends the recording; the events recorded so far are written.
        let mut stop = || Python::attach(|py| py.check_signals()).is_err();
        gt_tools::trace::record(&target, duration, limit, &path, &mut stop)
    });
    let recorded = recorded.map_err(to_python)?;
    Ok((recorded.events, recorded.dropped, recorded.title, recorded.ended))
}

/// Draw a log as a timeline, and return the numbers of lanes, events and moves in it, its duration
/// in seconds, and whether it was cut off.
#[pyfunction]
#[pyo3(signature = (log, output, format=None, dpi=150.0, width=16.0, height=10.0))]
fn visualize(
    py: Python<'_>,
    log: PathBuf,
    output: PathBuf,
    format: Option<&str>,
    dpi: f64,
    width: f64,
    height: f64,
) -> PyResult<Py<PyDict>> {
    let format = Format::find(format, &output).map_err(to_python)?;
    let size = Size { width, height, dpi };
    let drawn = py.detach(|| gt_tools::visualize::visualize(&log, &output, format, size));
    let drawn = drawn.map_err(to_python)?;
    let dict = PyDict::new(py);
    dict.set_item("lanes", drawn.rows)?;
    dict.set_item("events", drawn.events)?;
    dict.set_item("moves", drawn.moves)?;
    dict.set_item("seconds", drawn.seconds)?;
    dict.set_item("cut_off", drawn.cut_off)?;
    Ok(dict.unbind())
}

/// Show a dispatcher's activity until the user quits; with `once`, return one snapshot as text.
#[pyfunction]
#[pyo3(signature = (alpha=0.15, once=false, json=false, address=None, process=None, key_file=None, insecure=false))]
#[allow(clippy::too_many_arguments)] // One for each option of the command.
fn top(
    py: Python<'_>,
    alpha: f64,
    once: bool,
    json: bool,
    address: Option<String>,
    process: Option<u32>,
    key_file: Option<PathBuf>,
    insecure: bool,
) -> PyResult<String> {
    let target = WatchTarget { address, process, key_file, insecure };
    let options = TopOptions { target, alpha, once, json };
    let mut interrupted = None;
    let shown = py.detach(|| {
        let mut stop = || match Python::attach(|py| py.check_signals()) {
            Ok(()) => false,
            Err(error) => {
                interrupted = Some(error);
                true
            }
        };
        gt_tools::top::run(&options, &mut stop)
    });
    match interrupted {
        Some(error) => Err(error),
        None => shown.map_err(to_python),
    }
}

/// Return a text that explains what a session waits for, and which other sessions cause it.
#[pyfunction]
#[pyo3(signature = (session, address=None, process=None, key_file=None, insecure=false))]
fn explain_wait(
    py: Python<'_>,
    session: &str,
    address: Option<String>,
    process: Option<u32>,
    key_file: Option<PathBuf>,
    insecure: bool,
) -> PyResult<String> {
    let target = WatchTarget { address, process, key_file, insecure };
    py.detach(|| gt_tools::explain_wait::run(&target, session)).map_err(to_python)
}

/// Return a text that lists the sessions of the key's user.
#[pyfunction]
#[pyo3(signature = (address=None, process=None, key_file=None, insecure=false))]
fn list_sessions(
    py: Python<'_>,
    address: Option<String>,
    process: Option<u32>,
    key_file: Option<PathBuf>,
    insecure: bool,
) -> PyResult<String> {
    let target = WatchTarget { address, process, key_file, insecure };
    py.detach(|| gt_tools::sessions::run(&target)).map_err(to_python)
}

/// Return a text that lists what is published on a server.
#[pyfunction]
#[pyo3(signature = (address=None, process=None, key_file=None, insecure=false))]
fn list_publications(
    py: Python<'_>,
    address: Option<String>,
    process: Option<u32>,
    key_file: Option<PathBuf>,
    insecure: bool,
) -> PyResult<String> {
    let target = WatchTarget { address, process, key_file, insecure };
    py.detach(|| gt_tools::published::run(&target)).map_err(to_python)
}

/// Return the address of the only server on this machine, or of the one in a process.
#[pyfunction]
#[pyo3(signature = (process=None))]
fn only_server(py: Python<'_>, process: Option<u32>) -> PyResult<String> {
    let target = WatchTarget { process, ..WatchTarget::default() };
    py.detach(|| target.server()).map_err(to_python)
}

/// How long idle workers may take to answer.
const IDLE_ANSWER: Duration = Duration::from_millis(200);

/// Return the status of the current session's dispatcher as a dict, with its workers, sessions and
/// users.
#[pyfunction]
fn get_status(py: Python<'_>) -> PyResult<Py<PyDict>> {
    let session = session::current()?;
    let ask = || session::waiting(py, &session, |interrupt| session.status(interrupt));
    let mut status = ask()?;
    // A worker without a report may be finishing a batch whose answer has already arrived.
    let until = Instant::now() + IDLE_ANSWER;
    let is_unknown = |status: &Status| {
        let of = |worker: &WorkerStatus| worker.in_flight > 0 && worker.report.engine.is_empty();
        status.workers.iter().any(of)
    };
    while is_unknown(&status) && Instant::now() < until {
        py.detach(|| std::thread::sleep(Duration::from_millis(1)));
        status = ask()?;
    }
    // Ask the workers themselves only while all are idle: a busy one answers after its work. The
    // deadline covers work that another session submits meanwhile.
    let is_idle = status.workers.iter().all(|worker| worker.in_flight == 0);
    if is_idle && !status.workers.is_empty() {
        let until = Instant::now() + IDLE_ANSWER;
        let asked = |interrupt: &mut dyn FnMut() -> bool| {
            let mut is_late = false;
            let mut give_up = || {
                let is_interrupted = interrupt();
                is_late = !is_interrupted && Instant::now() > until;
                is_interrupted || is_late
            };
            match session.worker_stats(&mut give_up) {
                Err(ClientError::Interrupted) if is_late => Ok(Vec::new()),
                result => result,
            }
        };
        let stats = session::waiting(py, &session, asked)?;
        for worker in &mut status.workers {
            if let Some(stats) = stats.iter().find(|stats| stats.name == worker.name) {
                worker.report.engine.clone_from(&stats.engine);
                (worker.report.tensors, worker.report.bytes) = (stats.tensors, stats.bytes);
                worker.report.spilled_bytes = stats.spilled_bytes;
                worker.report.snapshot_bytes = stats.snapshot_bytes;
                worker.report.snapshot_disk_bytes = stats.snapshot_disk_bytes;
            }
        }
    }
    let dict = convert(py, &status)?;
    dict.set_item("at", session.describe())?;
    Ok(dict.unbind())
}

fn convert<'py>(py: Python<'py>, status: &Status) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("seconds", status.now.as_secs_f64())?;
    let workers = status.workers.iter().map(|worker| convert_worker(py, worker, status.now));
    dict.set_item("workers", PyList::new(py, workers.collect::<PyResult<Vec<_>>>()?)?)?;
    let sessions = status.sessions.iter();
    let sessions = sessions.map(|session| convert_session(py, session, status.now));
    dict.set_item("sessions", PyList::new(py, sessions.collect::<PyResult<Vec<_>>>()?)?)?;
    dict.set_item("publications", session::publishing::convert(py, status)?)?;
    let users = status.users.iter().map(|user| convert_user(py, user));
    dict.set_item("users", PyList::new(py, users.collect::<PyResult<Vec<_>>>()?)?)?;
    let teams = status.teams.iter().map(|team| convert_team(py, team));
    dict.set_item("teams", PyList::new(py, teams.collect::<PyResult<Vec<_>>>()?)?)?;
    Ok(dict)
}

fn convert_user<'py>(py: Python<'py>, user: &UserStatus) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    set_entitlement(&dict, &user.entitlement)?;
    dict.set_item("sessions", user.sessions)?;
    dict.set_item("share", user.share)?;
    dict.set_item("device_seconds", user.busy.as_secs_f64())?;
    set_windows(&dict, &user.windows)?;
    dict.set_item("bytes", user.bytes)?;
    dict.set_item("spilled_bytes", user.spilled)?;
    Ok(dict)
}

fn convert_team<'py>(py: Python<'py>, team: &TeamStatus) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("team", &team.name)?;
    dict.set_item("weight", team.weight)?;
    dict.set_item("sessions", team.sessions)?;
    dict.set_item("share", team.share)?;
    dict.set_item("device_seconds", team.busy.as_secs_f64())?;
    set_windows(&dict, &team.windows)?;
    dict.set_item("bytes", team.bytes)?;
    dict.set_item("spilled_bytes", team.spilled)?;
    Ok(dict)
}

fn set_windows(dict: &Bound<'_, PyDict>, of: &[WindowUse; WINDOWS.len()]) -> PyResult<()> {
    let windows = PyDict::new(dict.py());
    for ((name, _), window) in WINDOWS.iter().zip(of) {
        let seconds = PyDict::new(dict.py());
        seconds.set_item("entitled_seconds", window.entitled.as_secs_f64())?;
        seconds.set_item("used_seconds", window.used.as_secs_f64())?;
        windows.set_item(*name, seconds)?;
    }
    dict.set_item("windows", windows)
}

fn set_entitlement(dict: &Bound<'_, PyDict>, entitlement: &Entitlement) -> PyResult<()> {
    let Entitlement { user, team, team_weight, user_weight, priority, memory, .. } = entitlement;
    dict.set_item("user", user)?;
    dict.set_item("team", team)?;
    dict.set_item("weights", (team_weight, user_weight))?;
    dict.set_item("priority", priority)?;
    let quotas = memory.iter().map(|quota| (&quota.holder, quota.bytes));
    dict.set_item("memory_quotas", quotas.collect::<Vec<_>>())
}

fn convert_worker<'py>(
    py: Python<'py>,
    worker: &WorkerStatus,
    now: Duration,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("number", worker.number)?;
    dict.set_item("name", &worker.name)?;
    dict.set_item("machine", Some(&worker.host).filter(|host| !host.is_empty()))?;
    dict.set_item("rack", Some(&worker.rack).filter(|rack| !rack.is_empty()))?;
    let report = Some(&worker.report).filter(|report| report.is_received());
    dict.set_item("engine", report.map(|report| &report.engine))?;
    dict.set_item("tensors", report.map(|report| report.tensors))?;
    dict.set_item("bytes", report.map(|report| report.bytes))?;
    dict.set_item("spilled_bytes", report.map(|report| report.spilled_bytes))?;
    dict.set_item("snapshot_bytes", report.map(|report| report.snapshot_bytes))?;
    let on_disk = report.map(|report| report.snapshot_disk_bytes);
    dict.set_item("snapshot_disk_bytes", on_disk)?;
    dict.set_item("draining", worker.is_draining)?;
    dict.set_item("queued", worker.in_flight)?;
    let busy = worker.busy_since.map(|since| now.saturating_sub(since).as_secs_f64());
    dict.set_item("busy_for", busy)?;
    Ok(dict)
}

fn convert_session<'py>(
    py: Python<'py>,
    session: &SessionStatus,
    now: Duration,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("number", session.number.0)?;
    dict.set_item("name", &session.name)?;
    dict.set_item("program", &session.origin.program)?;
    dict.set_item("login", &session.origin.user)?;
    dict.set_item("host", &session.origin.host)?;
    let slots: Vec<&String> = session.slots.iter().map(|(_, worker)| worker).collect();
    dict.set_item("slots", slots)?;
    dict.set_item("seconds", now.saturating_sub(session.since).as_secs_f64())?;
    dict.set_item("instructions", session.instructions)?;
    dict.set_item("open", session.open)?;
    dict.set_item("queued", session.queued)?;
    dict.set_item("bytes", session.bytes)?;
    dict.set_item("spilled_bytes", session.spilled)?;
    dict.set_item("recoveries", session.recoveries)?;
    dict.set_item("unkept", &session.unkept)?;
    dict.set_item("tensors", session.tensors)?;
    let named = session.named.as_ref();
    dict.set_item("session_name", named.map(|named| &named.name))?;
    dict.set_item("detached", named.is_some_and(|named| named.is_detached))?;
    dict.set_item("kept", named.map_or(0, |named| named.kept))?;
    set_entitlement(&dict, &session.entitlement)?;
    dict.set_item("share", session.share)?;
    dict.set_item("device_seconds", session.busy.as_secs_f64())?;
    dict.set_item("anticipated_seconds", session.anticipated.as_secs_f64())?;
    dict.set_item("anticipations", session.anticipations)?;
    set_windows(&dict, &session.windows)?;
    dict.set_item("behind", &session.behind)?;
    let waits = match &session.waits {
        Waits::Nothing => "nothing".to_string(),
        Waits::Workers => "a worker to come".to_string(),
        Waits::Room => "room at the workers".to_string(),
        Waits::Operator => "an operator, who has paused it".to_string(),
        Waits::Reader => "its client to read what was sent".to_string(),
        Waits::Copies => "copies of its tensors".to_string(),
        Waits::Work => "its instructions to run".to_string(),
        Waits::Value { tensor, worker, since } => {
            let seconds = now.saturating_sub(*since).as_secs_f64();
            format!("{tensor}, on worker {worker}, for {seconds:.1} s")
        }
        Waits::Memory { worker, bytes, holder, since } => {
            let seconds = now.saturating_sub(*since).as_secs_f64();
            let of = match holder.as_str() {
                "" => String::new(),
                holder => format!(" of {holder}"),
            };
            format!("{bytes} bytes of memory{of} on worker {worker}, for {seconds:.1} s")
        }
    };
    dict.set_item("waits_for", waits)?;
    Ok(dict)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(trace, module)?)?;
    module.add_function(wrap_pyfunction!(top, module)?)?;
    module.add_function(wrap_pyfunction!(explain_wait, module)?)?;
    module.add_function(wrap_pyfunction!(list_sessions, module)?)?;
    module.add_function(wrap_pyfunction!(list_publications, module)?)?;
    module.add_function(wrap_pyfunction!(only_server, module)?)?;
    module.add_function(wrap_pyfunction!(visualize, module)?)?;
    module.add_function(wrap_pyfunction!(get_status, module)?)
}
