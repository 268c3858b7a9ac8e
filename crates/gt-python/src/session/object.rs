//! The Python object for a session.

use std::path::PathBuf;
use std::sync::Arc;

use gt::Session;
use pyo3::exceptions::PyConnectionError;
use pyo3::prelude::*;

use super::current;
use super::default::{open_connection, parse_seed, set_slots, slot_count, worker_count};
use super::fork::ForkBlocker;
use super::handle::{self, SessionHandle};
use super::wait;
use crate::error::IntoPython;
use crate::tensor::PyTensor;

/// A session, or what is left of one that is closed.
#[pyclass(name = "OpenSession", module = "gt._gt", frozen)]
pub struct PySession(Option<Arc<SessionHandle>>);

impl PySession {
    fn handle(&self) -> &Arc<SessionHandle> {
        self.0.as_ref().expect("it is there until it is dropped")
    }

    /// The session, if it is open.
    pub fn session(&self) -> PyResult<Session> {
        self.handle().session().ok_or_else(|| {
            PyConnectionError::new_err(format!(
                "session {} is closed ({})\n  hint: open another with gt.Session(...)",
                self.handle().number(),
                self.handle().place()
            ))
        })
    }
}

impl Drop for PySession {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            // At the interpreter's end the process's own end closes the session.
            let mut left = Some(handle);
            Python::try_attach(|py| left.take().map(|handle| handle::release(py, handle)));
            std::mem::forget(left);
        }
    }
}

#[pymethods]
impl PySession {
    /// Its number among the sessions of this process.
    #[getter]
    fn number(&self) -> u64 {
        self.handle().number()
    }

    /// What it is connected to.
    #[getter]
    fn place(&self) -> &str {
        self.handle().place()
    }

    /// Whether it has ended.
    #[getter]
    fn closed(&self) -> bool {
        self.handle().is_closed()
    }

    /// Ends it.
    fn close(&self, py: Python<'_>) {
        self.handle().close(py);
    }

    /// Has this thread use it until `leave`; `closes` if that is its end, too.
    fn enter(&self, closes: bool) -> PyResult<()> {
        self.session()?;
        current::enter(Arc::clone(self.handle()), closes);
        Ok(())
    }

    /// Has this thread use what it used before.
    fn leave(&self, py: Python<'_>) -> PyResult<()> {
        current::leave(py, self.handle())
    }

    /// Starts its random numbers anew.
    fn manual_seed(&self, seed: &Bound<'_, PyAny>) -> PyResult<()> {
        let seed = parse_seed(seed)?;
        self.session()?.manual_seed(seed);
        Ok(())
    }

    /// Sets how many slots its tensors are cut over from now on.
    #[pyo3(signature = (slots=None, elastic=None))]
    fn rescale(&self, slots: Option<i64>, elastic: Option<bool>) -> PyResult<()> {
        let slots = slots.map(|count| slot_count("rescale", count)).transpose()?;
        self.session()?.rescale(slots, elastic).py()
    }

    /// Waits until all that was issued to it is computed.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        wait::synchronize(py, &self.session()?)
    }
}

/// Opens a session: on a server, or without an address with workers of its own in this process.
#[pyfunction]
#[pyo3(signature = (address=None, key_file=None, insecure=false, workers=None, slots=None, elastic=None))]
#[allow(clippy::too_many_arguments, reason = "they are those of gt.Session")]
fn open_session(
    py: Python<'_>,
    address: Option<&str>,
    key_file: Option<PathBuf>,
    insecure: bool,
    workers: Option<i64>,
    slots: Option<i64>,
    elastic: Option<bool>,
) -> PyResult<PySession> {
    let slots = slots.map(|count| slot_count("Session", count)).transpose()?;
    if let Some(address) = address {
        let handle = open_connection(py, address, key_file, insecure)?;
        set_slots(&handle, slots, elastic)?;
        return Ok(PySession(Some(handle)));
    }
    let workers = workers.map(|count| worker_count("Session", count)).transpose()?;
    let seed = current::seed();
    let blocker = ForkBlocker::to_open(py)?;
    let handle = SessionHandle::embedded(py, &blocker, workers, seed)?;
    set_slots(&handle, slots, elastic)?;
    Ok(PySession(Some(handle)))
}

/// The session that this thread uses; starts one in this process where there is none.
#[pyfunction]
fn current_session(py: Python<'_>) -> PyResult<PySession> {
    Ok(PySession(Some(current::handle(py)?)))
}

/// The session of a tensor.
#[pyfunction]
fn session_of(tensor: &PyTensor) -> PySession {
    PySession(Some(SessionHandle::of(tensor.0.session())))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySession>()?;
    module.add_function(wrap_pyfunction!(open_session, module)?)?;
    module.add_function(wrap_pyfunction!(current_session, module)?)?;
    module.add_function(wrap_pyfunction!(session_of, module)?)
}
