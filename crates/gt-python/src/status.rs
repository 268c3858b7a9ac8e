//! `gt.status()`: the state of the current session's dispatcher as a dict.

use std::time::{Duration, Instant};

use gt::ir::entitlement::Entitlement;
use gt::ir::gpu::GpuStatus;
use gt::ir::statistics::WorkerStats;
use gt::ir::status::{
    LastError, SessionStatus, Status, TeamStatus, UserStatus, WINDOWS, Waits, WindowUse,
    WorkerStatus,
};
use gt::{ClientError, Session};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::session;

/// How long idle workers may take to answer.
const IDLE_ANSWER: Duration = Duration::from_millis(200);

/// The pause between two questions for a reading of a GPU.
const GPU_PAUSE: Duration = Duration::from_millis(2);

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
        let mut stats = ask_workers(py, &session, until)?;
        fill_in(&mut status, &stats);
        // A worker answers with the last reading of its GPU. The next one follows in milliseconds.
        let is_unread =
            |stats: &WorkerStats| stats.gpu.as_ref().is_some_and(|gpu| gpu.reading.is_none());
        while stats.iter().any(is_unread) && Instant::now() < until {
            py.detach(|| std::thread::sleep(GPU_PAUSE));
            stats = ask_workers(py, &session, until)?;
            fill_in(&mut status, &stats);
        }
    }
    let dict = convert(py, &status)?;
    dict.set_item("at", session.describe())?;
    Ok(dict.unbind())
}

/// Returns the statistics of all workers; nothing if they do not answer in time.
fn ask_workers(py: Python<'_>, session: &Session, until: Instant) -> PyResult<Vec<WorkerStats>> {
    session::waiting(py, session, |interrupt| {
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
    })
}

/// Fills in what the workers themselves have answered.
fn fill_in(status: &mut Status, stats: &[WorkerStats]) {
    for worker in &mut status.workers {
        if let Some(stats) = stats.iter().find(|stats| stats.name == worker.name) {
            worker.report.engine.clone_from(&stats.engine);
            worker.report.memory_limit = stats.memory_limit;
            (worker.report.tensors, worker.report.bytes) = (stats.tensors, stats.bytes);
            worker.report.spilled_bytes = stats.spilled_bytes;
            worker.report.snapshot_bytes = stats.snapshot_bytes;
            worker.report.snapshot_disk_bytes = stats.snapshot_disk_bytes;
            worker.report.gpu.clone_from(&stats.gpu);
        }
    }
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
    dict.set_item("memory_limit", report.and_then(|report| report.memory_limit))?;
    dict.set_item("tensors", report.map(|report| report.tensors))?;
    dict.set_item("bytes", report.map(|report| report.bytes))?;
    dict.set_item("spilled_bytes", report.map(|report| report.spilled_bytes))?;
    dict.set_item("snapshot_bytes", report.map(|report| report.snapshot_bytes))?;
    let on_disk = report.map(|report| report.snapshot_disk_bytes);
    dict.set_item("snapshot_disk_bytes", on_disk)?;
    let gpu = report.and_then(|report| report.gpu.as_ref());
    dict.set_item("gpu", gpu.map(|gpu| convert_gpu(py, gpu)).transpose()?)?;
    dict.set_item("draining", worker.is_draining)?;
    dict.set_item("queued", worker.in_flight)?;
    let busy = worker.busy_since.map(|since| now.saturating_sub(since).as_secs_f64());
    dict.set_item("busy_for", busy)?;
    Ok(dict)
}

fn convert_gpu<'py>(py: Python<'py>, gpu: &GpuStatus) -> PyResult<Bound<'py, PyDict>> {
    let reading = gpu.reading.unwrap_or_default();
    let dict = PyDict::new(py);
    dict.set_item("name", &gpu.name)?;
    dict.set_item("index", gpu.index)?;
    dict.set_item("uuid", &gpu.uuid)?;
    dict.set_item("used_percent", reading.percent)?;
    dict.set_item("used_bytes", reading.memory.map(|memory| memory.used))?;
    dict.set_item("total_bytes", reading.memory.map(|memory| memory.total))?;
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
    let error = session.last_error.as_ref().map(|error| convert_error(py, error, now));
    dict.set_item("last_error", error.transpose()?)?;
    Ok(dict)
}

fn convert_error<'py>(
    py: Python<'py>,
    error: &LastError,
    now: Duration,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("seconds", now.saturating_sub(error.at).as_secs_f64())?;
    dict.set_item("operation", &error.operation)?;
    dict.set_item("reason", &error.reason)?;
    dict.set_item("worker", &error.worker)?;
    dict.set_item("line", &error.line)?;
    Ok(dict)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(get_status, module)?)
}
