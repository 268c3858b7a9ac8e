//! Server and worker processes, and keys: the functions behind `python -m gt.server`,
//! `python -m gt.worker` and `gt key`.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use gt::LineageLimits;
use gt::drivers::network::server::{Ask, Server, ServerOptions, ShutdownReason};
use gt::drivers::network::worker::{WorkerAsk, WorkerOptions, WorkerOutcome, WorkerProcess};
use gt::net::NetError;
use gt::net::address::Address;
use gt::net::keys::Key;
use gt::net::published::{AddressFile, ServerAddress};
use gt::worker::{Engine, Work};
use gt_web::Page;
use pyo3::exceptions::{PyConnectionError, PyValueError};
use pyo3::prelude::*;

use crate::interrupt::until_signal;
use crate::{engine, web};

fn to_python(error: NetError) -> PyErr {
    match error {
        NetError::BadAddress { .. } | NetError::BadKey { .. } => {
            PyValueError::new_err(error.to_string())
        }
        _ => PyConnectionError::new_err(error.to_string()),
    }
}

fn seconds(name: &str, given: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(given)
        .map_err(|_| PyValueError::new_err(format!("{name} is {given}, expected seconds")))
}

/// How often a port that was free is tried before it counts as taken.
const TRIES: usize = 100;

/// Binds a server; at port 0, at a free port, which is then the address of the options.
fn bind(options: &mut ServerOptions) -> Result<Server, NetError> {
    if !options.address.is_any_port() {
        return Server::bind(options);
    }
    let any = options.address.clone();
    let mut tries = 0;
    loop {
        options.address = any.with_free_port()?;
        tries += 1;
        match Server::bind(options) {
            // Another process was faster.
            Err(NetError::InUse { .. }) if tries < TRIES => {}
            result => return result,
        }
    }
}

/// Return whether a server is published and listens at an address, given as for `run_worker`.
#[pyfunction]
fn is_listening(py: Python<'_>, address: &str) -> PyResult<bool> {
    let server = ServerAddress::parse(address).map_err(to_python)?;
    Ok(py.detach(|| server.resolve().is_ok_and(|at| at.is_accepting(Duration::from_secs(1)))))
}

/// Run a server: listen at an address and serve until a signal arrives.
///
/// Args:
///     on_ready: called once the server listens, with the address at which it does, that at which
///         others reach it, and the links that open its web page and by which operators act by it,
///         or None.
///     is_stopped: called several times a second; a true result ends the server.
///     wants_reload: called several times a second; a true result reloads the policy file.
///     publish: a file to which it writes its address while it listens.
///     page: how its web page is served, as for `run_web`; None for no page.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "they are the options of a program")]
#[pyo3(signature = (address, on_ready, is_stopped, key_file=None, insecure=false, log_file=None, worker_wait=30.0, data_roots=Vec::new(), policy=None, lineage_bytes=256 << 20, lineage_time=5.0, lineage_disk=256 << 20, lineage_total=4 << 30, grace=600.0, state=None, workers=0, wants_reload=None, publish=None, page=None))]
fn run_server(
    py: Python<'_>,
    address: &str,
    on_ready: &Bound<'_, PyAny>,
    is_stopped: &Bound<'_, PyAny>,
    key_file: Option<PathBuf>,
    insecure: bool,
    log_file: Option<PathBuf>,
    worker_wait: f64,
    data_roots: Vec<PathBuf>,
    policy: Option<PathBuf>,
    lineage_bytes: u64,
    lineage_time: f64,
    lineage_disk: u64,
    lineage_total: u64,
    grace: f64,
    state: Option<PathBuf>,
    workers: usize,
    wants_reload: Option<Py<PyAny>>,
    publish: Option<PathBuf>,
    page: Option<web::WebOptions>,
) -> PyResult<()> {
    let worker_wait = seconds("worker_wait", worker_wait)?;
    let time = seconds("lineage_time", lineage_time)?;
    let lineage = (lineage_bytes > 0).then_some(LineageLimits {
        bytes: lineage_bytes,
        total: lineage_total,
        time,
        kept: lineage_disk,
    });
    let address = Address::parse_to_listen(address).map_err(to_python)?;
    let mut options = ServerOptions {
        address,
        key_file,
        insecure,
        log_file,
        worker_wait,
        workers,
        data_roots,
        policy,
        lineage,
        grace: seconds("grace", grace)?,
        state,
    };
    let server = bind(&mut options).map_err(to_python)?;
    let address = options.address.to_publish();
    // It stays while the server is bound again.
    let file = publish.map(|path| AddressFile::write(&path, &address)).transpose();
    let file = file.map_err(to_python)?;
    let (key_file, insecure) = (options.key_file.clone(), options.insecure);
    let page = page.map(|page| web::start(page, &options.address, key_file, insecure));
    let page = page.transpose()?;
    let link = page.as_ref().map(Page::link);
    let acting_link = page.as_ref().and_then(Page::acting_link);
    on_ready.call1((options.address.to_string(), address.to_string(), link, acting_link))?;
    let asks = || {
        let Some(wants) = &wants_reload else { return Ok(false) };
        Python::attach(|py| wants.call0(py)?.is_truthy(py))
    };
    let mut failed = None;
    let serve = |stop: &mut dyn FnMut() -> bool| -> Result<(), NetError> {
        let mut ask = || match (stop(), asks()) {
            (true, _) => Ask::Stop,
            (false, Ok(true)) => Ask::Reload,
            (false, Ok(false)) => Ask::Nothing,
            (false, Err(error)) => {
                failed = Some(error);
                Ask::Stop
            }
        };
        let mut server = server;
        // Dropped first: it watches the server.
        let _page = page;
        // Dropped before the server: the next one, at the same address, may publish at once.
        let _file = file;
        while server.run(&mut ask)? == ShutdownReason::StoodStill {
            // Release the address and the state folder for the next server.
            drop(server);
            server = Server::bind(&options)?;
        }
        Ok(())
    };
    let result = until_signal(py, is_stopped, |stop| serve(stop).map_err(to_python));
    failed.map_or(result, Err)
}

/// Run a worker: connect to a server and execute its instructions until a signal arrives or the
/// server is gone. `on_ready` is called once the worker is connected, with the engine and its device
/// as text, the threads of the native engine and the bytes for tensors; `is_stopped` and `is_leaving`
/// several times a second: a true result of the first ends the worker, one of the second has it hand
/// over what it has to other workers first, for `drain_within` seconds at most. Returns whether all
/// was handed over.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "they are the options of a program")]
#[pyo3(signature = (address, name, on_ready, is_stopped, key_file=None, insecure=false, threads=None, peer_host=None, rack="", backend="native", data_roots=Vec::new(), memory=None, spill_dir=None, spill_limit=None, state=None, is_leaving=None, drain_within=0.0))]
fn run_worker(
    py: Python<'_>,
    address: &str,
    name: String,
    on_ready: &Bound<'_, PyAny>,
    is_stopped: &Bound<'_, PyAny>,
    key_file: Option<PathBuf>,
    insecure: bool,
    threads: Option<usize>,
    peer_host: Option<String>,
    rack: &str,
    backend: &str,
    data_roots: Vec<PathBuf>,
    memory: Option<u64>,
    spill_dir: Option<PathBuf>,
    spill_limit: Option<u64>,
    state: Option<PathBuf>,
    is_leaving: Option<Py<PyAny>>,
    drain_within: f64,
) -> PyResult<bool> {
    let address = ServerAddress::parse(address).map_err(to_python)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.unwrap_or(cores).max(1);
    let mut engine = engine::PythonEngine::load(py, backend, 0)?;
    let fabric = match &mut engine {
        Some(engine) => engine.enable_collectives(py)?,
        None => {
            engine::refuse_collectives(py)?;
            None
        }
    };
    let rate = engine.as_ref().map_or_else(|| gt::NativeEngine::new(1).rate(), Engine::rate);
    let options = WorkerOptions {
        address,
        name,
        key_file,
        insecure,
        threads,
        peer_host,
        rack: rack.to_string(),
        fabric,
        rate,
        is_exact: engine.is_none(),
        arithmetic: match &engine {
            Some(engine) => engine.arithmetic(py)?,
            None => gt::native_arithmetic(),
        },
        data_roots,
        spill_dir: spill_dir.or_else(gt::drivers::memory::spill_dir),
        state,
        drain_within: seconds("drain_within", drain_within)?,
    };
    let limits = gt::MemoryOptions::from_environment();
    let memory = gt::MemoryOptions {
        memory: memory.or(limits.memory),
        spill: spill_limit.or(limits.spill),
        has_spill_dir: options.spill_dir.is_some(),
    };
    if let Some(engine) = &engine {
        engine.watchdog().end_process_if_it_hangs(&options.name, backend);
        engine.end_process_if_device_is_lost(&options.name);
    }
    let limit = memory.limit(engine.as_ref().and_then(Engine::memory));
    let has = (options.arithmetic.clone(), engine.is_none().then_some(threads), limit);
    let engine = Mutex::new(engine);
    let make = |name: String, threads: usize| -> Box<dyn Work> {
        match engine.lock().ok().and_then(|mut engine| engine.take()) {
            Some(engine) => gt::worker_with(name, engine, memory),
            None => gt::native_worker_with(name, threads, memory),
        }
    };
    let mut worker = py.detach(|| WorkerProcess::join(&options, &make)).map_err(to_python)?;
    on_ready.call1(has)?;
    let leaves = || {
        let Some(is_leaving) = &is_leaving else { return Ok(false) };
        Python::attach(|py| is_leaving.call0(py)?.is_truthy(py))
    };
    let mut ended = (WorkerOutcome::Stopped, None);
    until_signal(py, is_stopped, |stop| {
        let mut ask = || match (stop(), leaves()) {
            (true, _) => WorkerAsk::Stop,
            (false, Ok(true)) => WorkerAsk::Leave,
            (false, Ok(false)) => WorkerAsk::Nothing,
            (false, Err(error)) => {
                ended.1 = Some(error);
                WorkerAsk::Stop
            }
        };
        let end = worker.run(&mut ask).map_err(to_python)?;
        ended.0 = end;
        Ok(())
    })?;
    ended.1.map_or(Ok(ended.0 == WorkerOutcome::Drained), Err)
}

/// Return the number of bytes that a string such as `16GB` means.
#[pyfunction]
fn parse_size(text: &str) -> PyResult<u64> {
    gt::environment::bytes(text).ok_or_else(|| {
        PyValueError::new_err(format!(
            "the size is '{text}', expected one as 16GB, 512MiB or a number of bytes"
        ))
    })
}

/// Return a new cluster key, or one derived from the key `of`: limited to a role ("client",
/// "worker", "watcher" or "operator"), or to a user of a team.
#[pyfunction]
#[pyo3(signature = (role=None, of=None, user=None, team=""))]
fn make_key(
    role: Option<&str>,
    of: Option<&str>,
    user: Option<&str>,
    team: &str,
) -> PyResult<String> {
    use gt::ir::message::Role;
    let key = of.map_or_else(|| Ok(Key::generate()), Key::parse).map_err(to_python)?;
    if let Some(user) = user {
        return Ok(key.of_user(user, team).map_err(to_python)?.to_text());
    }
    let role = match role {
        None => return Ok(key.to_text()),
        Some("client") => Role::Client,
        Some("worker") => Role::Worker,
        Some("watcher") => Role::Watcher,
        Some("operator") => Role::Operator,
        Some(other) => {
            return Err(PyValueError::new_err(format!(
                "the role is '{other}', expected client, worker, watcher or operator"
            )));
        }
    };
    Ok(key.limited(role).map_err(to_python)?.to_text())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(run_server, module)?)?;
    module.add_function(wrap_pyfunction!(run_worker, module)?)?;
    module.add_function(wrap_pyfunction!(is_listening, module)?)?;
    module.add_function(wrap_pyfunction!(parse_size, module)?)?;
    module.add_function(wrap_pyfunction!(make_key, module)?)
}
