//! What operators have a server do.

use std::path::PathBuf;
use std::time::Duration;

use gt::drivers::operate::{self, OperatorRequest};
use gt_tools::find::WatchTarget;
use pyo3::exceptions::{PyConnectionError, PyValueError};
use pyo3::prelude::*;

use crate::tools::to_python;

/// Have a server do what an operator asks. Returns what was done.
fn operate(
    py: Python<'_>,
    operation: OperatorRequest,
    (address, process, key_file, insecure): (Option<String>, Option<u32>, Option<PathBuf>, bool),
) -> PyResult<String> {
    let target = WatchTarget { address, process, key_file, insecure };
    let mut raised = None;
    let done = py.detach(|| {
        let mut interrupt = || {
            raised = Python::attach(|py| py.check_signals()).err();
            raised.is_some()
        };
        gt_tools::operate::run(&target, operate::name(), operation, &mut interrupt)
    });
    match (done.map_err(to_python)?, raised) {
        (Some(done), _) => Ok(done),
        (None, Some(error)) => Err(error),
        (None, None) => Err(PyConnectionError::new_err("the wait was interrupted")),
    }
}

/// Drain a worker within some seconds: its slots and tensors move to others, and it ends.
#[pyfunction]
#[pyo3(signature = (worker, within, force=false, address=None, process=None, key_file=None, insecure=false))]
#[allow(clippy::too_many_arguments)] // One for each option of the command.
fn drain_worker(
    py: Python<'_>,
    worker: String,
    within: f64,
    force: bool,
    address: Option<String>,
    process: Option<u32>,
    key_file: Option<PathBuf>,
    insecure: bool,
) -> PyResult<String> {
    let within = Duration::try_from_secs_f64(within).map_err(|_| {
        PyValueError::new_err(format!("the time is {within} s, expected 0 or more"))
    })?;
    let operation = OperatorRequest::Drain { worker, within, force };
    operate(py, operation, (address, process, key_file, insecure))
}

/// End any session by its name, label or number, as an operator.
#[pyfunction]
#[pyo3(signature = (name, user=None, address=None, process=None, key_file=None, insecure=false))]
fn end_any_session(
    py: Python<'_>,
    name: String,
    user: Option<String>,
    address: Option<String>,
    process: Option<u32>,
    key_file: Option<PathBuf>,
    insecure: bool,
) -> PyResult<String> {
    let operation = OperatorRequest::EndSession { user, name };
    operate(py, operation, (address, process, key_file, insecure))
}

/// Pause or resume a session, or all of a user, as an operator.
#[pyfunction]
#[pyo3(signature = (is_paused, name=None, user=None, address=None, process=None, key_file=None, insecure=false))]
#[allow(clippy::too_many_arguments)] // One for each option of the command.
fn pause_sessions(
    py: Python<'_>,
    is_paused: bool,
    name: Option<String>,
    user: Option<String>,
    address: Option<String>,
    process: Option<u32>,
    key_file: Option<PathBuf>,
    insecure: bool,
) -> PyResult<String> {
    let operation = OperatorRequest::Pause { user, name, is_paused };
    operate(py, operation, (address, process, key_file, insecure))
}

/// Set the weight of a user in place of the policy's, as an operator; None is the policy's again.
#[pyfunction]
#[pyo3(signature = (user, weight=None, address=None, process=None, key_file=None, insecure=false))]
fn weigh_user(
    py: Python<'_>,
    user: String,
    weight: Option<u32>,
    address: Option<String>,
    process: Option<u32>,
    key_file: Option<PathBuf>,
    insecure: bool,
) -> PyResult<String> {
    let operation = OperatorRequest::Weigh { user: Some(user), name: None, weight };
    operate(py, operation, (address, process, key_file, insecure))
}

/// Set the weight of a session among those of its user, as an operator, or as that user; None is 1.
#[pyfunction]
#[pyo3(signature = (name, weight=None, user=None, address=None, process=None, key_file=None, insecure=false))]
#[allow(clippy::too_many_arguments)] // One for each option of the command.
fn weigh_session(
    py: Python<'_>,
    name: String,
    weight: Option<u32>,
    user: Option<String>,
    address: Option<String>,
    process: Option<u32>,
    key_file: Option<PathBuf>,
    insecure: bool,
) -> PyResult<String> {
    let operation = OperatorRequest::Weigh { user, name: Some(name), weight };
    operate(py, operation, (address, process, key_file, insecure))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(drain_worker, module)?)?;
    module.add_function(wrap_pyfunction!(end_any_session, module)?)?;
    module.add_function(wrap_pyfunction!(pause_sessions, module)?)?;
    module.add_function(wrap_pyfunction!(weigh_session, module)?)?;
    module.add_function(wrap_pyfunction!(weigh_user, module)?)
}
