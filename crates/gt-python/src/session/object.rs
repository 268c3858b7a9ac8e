//! The Python object of a session.

use std::sync::Arc;

use gt::Session;
use pyo3::exceptions::PyConnectionError;
use pyo3::prelude::*;

use super::address::parse_server;
use super::current;
use super::default::{
    open_connection, optional_flag, parse_seed, set_slots, slot_count, worker_count,
};
use super::fork::ForkBlocker;
use super::handle::{self, ServerTarget, SessionHandle};
use super::origin::origin;
use super::wait;
use crate::argument;
use crate::error::IntoPython;
use crate::tensor::PyTensor;

/// A session, open or closed.
#[pyclass(name = "OpenSession", module = "gt._gt", frozen)]
pub struct PySession(Option<Arc<SessionHandle>>);

impl PySession {
    fn handle(&self) -> &Arc<SessionHandle> {
        self.0.as_ref().expect("present until dropped")
    }

    /// Returns the session.
    ///
    /// # Errors
    /// It is closed.
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
            // After interpreter shutdown, the handle is leaked: process exit has closed the
            // session.
            let mut left = Some(handle);
            Python::try_attach(|py| left.take().map(|handle| handle::release(py, handle)));
            std::mem::forget(left);
        }
    }
}

#[pymethods]
impl PySession {
    /// The session's number within this process.
    #[getter]
    fn number(&self) -> u64 {
        self.handle().number()
    }

    /// A description of the server or workers that the session is connected to.
    #[getter]
    fn place(&self) -> &str {
        self.handle().place()
    }

    /// Whether the session is on a server.
    #[getter]
    fn remote(&self) -> bool {
        self.handle().is_remote()
    }

    /// The name under which the session is shown.
    #[getter]
    fn name(&self) -> &str {
        self.handle().name()
    }

    /// Whether the session has ended.
    #[getter]
    fn closed(&self) -> bool {
        self.handle().is_closed()
    }

    /// End the session.
    fn close(&self, py: Python<'_>) {
        self.handle().close(py);
    }

    /// Select the session for this thread until `leave()`. `closes` is whether the caller closes
    /// the session then.
    fn enter(&self, closes: bool) -> PyResult<()> {
        self.session()?;
        current::enter(Arc::clone(self.handle()), closes);
        Ok(())
    }

    /// Select the session that this thread used before `enter()`.
    fn leave(&self, py: Python<'_>) -> PyResult<()> {
        current::leave(py, self.handle())
    }

    /// Seed the session's random numbers.
    fn manual_seed(&self, seed: &Bound<'_, PyAny>) -> PyResult<()> {
        let seed = parse_seed(seed)?;
        self.session()?.manual_seed(seed);
        Ok(())
    }

    /// Set the number of slots over which the session shards tensors from now on.
    #[pyo3(signature = (slots=None, elastic=None))]
    fn rescale(
        &self,
        slots: Option<&Bound<'_, PyAny>>,
        elastic: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let slots = slot_count("rescale", slots)?;
        let elastic = optional_flag("rescale", "elastic", elastic)?;
        self.session()?.rescale(slots, elastic).py()
    }

    /// Wait until all instructions issued to the session are computed.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        wait::synchronize(py, &self.session()?)
    }
}

/// Open a session on a server, or, without an address, with workers of its own in this process.
#[pyfunction]
#[pyo3(signature = (address, key_file, insecure, workers, slots, elastic, name))]
#[allow(clippy::too_many_arguments, reason = "they are those of gt.Session")]
fn open_session(
    py: Python<'_>,
    address: Option<Bound<'_, PyAny>>,
    key_file: Option<Bound<'_, PyAny>>,
    insecure: &Bound<'_, PyAny>,
    workers: Option<&Bound<'_, PyAny>>,
    slots: Option<&Bound<'_, PyAny>>,
    elastic: Option<&Bound<'_, PyAny>>,
    name: Option<&Bound<'_, PyAny>>,
) -> PyResult<PySession> {
    let origin = origin(py, "Session", name)?;
    let insecure = argument::flag("Session", "insecure", insecure)?;
    let slots = slot_count("Session", slots)?;
    let elastic = optional_flag("Session", "elastic", elastic)?;
    let count = |given| worker_count("Session", argument::int("Session", "workers", given)?);
    let workers = workers.map(count).transpose()?;
    if let Some(address) = address {
        let (address, key_file) = parse_server("Session", &address, key_file)?;
        let server = ServerTarget { address, key_file, insecure };
        let handle = open_connection(py, origin, &server)?;
        set_slots(&handle, slots, elastic)?;
        return Ok(PySession(Some(handle)));
    }
    let seed = current::seed();
    let blocker = ForkBlocker::to_open(py)?;
    let handle = SessionHandle::embedded(py, &blocker, origin, workers, seed)?;
    set_slots(&handle, slots, elastic)?;
    Ok(PySession(Some(handle)))
}

/// Return the session that this thread uses; start one in this process if there is none.
#[pyfunction]
fn current_session(py: Python<'_>) -> PyResult<PySession> {
    Ok(PySession(Some(current::handle(py)?)))
}

/// Return the session of a tensor.
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
