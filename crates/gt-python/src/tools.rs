//! The diagnostic tools, which connect to a dispatcher as watchers.

use std::path::PathBuf;
use std::time::Duration;

use gt_tools::ToolError;
use gt_tools::find::WatchTarget;
use gt_tools::top::TopOptions;
use gt_tools::visualize::{Format, Size};
use pyo3::exceptions::{PyConnectionError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

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

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(trace, module)?)?;
    module.add_function(wrap_pyfunction!(top, module)?)?;
    module.add_function(wrap_pyfunction!(explain_wait, module)?)?;
    module.add_function(wrap_pyfunction!(list_sessions, module)?)?;
    module.add_function(wrap_pyfunction!(list_publications, module)?)?;
    module.add_function(wrap_pyfunction!(only_server, module)?)?;
    module.add_function(wrap_pyfunction!(visualize, module)?)
}
