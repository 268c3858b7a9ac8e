//! Tensors that are published for others, and those that others have published.

use std::time::{SystemTime, UNIX_EPOCH};

use gt::ir::publication::Audience;
use gt::ir::status::Status;
use gt::{NewPublication, Session, Tensor};
use pyo3::exceptions::PyConnectionError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use super::current;
use super::wait::{self, waiting};
use crate::tensor::PyTensor;

/// Publish tensors of this thread's session, with the structure around them; return the name with
/// user and version. `users` is None for all users, and an empty list for the team.
#[pyfunction]
#[pyo3(signature = (name, users, description, structure, tensors))]
fn publish_tensors(
    py: Python<'_>,
    name: String,
    users: Option<Vec<String>>,
    description: String,
    structure: Vec<u8>,
    tensors: Vec<Py<PyTensor>>,
) -> PyResult<String> {
    let session = on_server(py, "publish")?;
    let audience = match users {
        None => Audience::All,
        Some(users) if users.is_empty() => Audience::Team,
        Some(users) => Audience::Users(users),
    };
    let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let structure = structure.into();
    let new = NewPublication { name, audience, description, structure, at };
    let tensors: Vec<Tensor> = tensors.iter().map(|tensor| tensor.get().0.clone()).collect();
    waiting(py, &session, |interrupt| session.publish(new, &tensors, interrupt))
}

/// Return the name, the structure and the tensors of a publication.
#[pyfunction]
fn shared_tensors<'py>(
    py: Python<'py>,
    name: &str,
) -> PyResult<(String, Bound<'py, PyBytes>, Vec<PyTensor>)> {
    let session = on_server(py, "shared")?;
    let shared = waiting(py, &session, |interrupt| session.shared(name, interrupt))?;
    let tensors = shared.tensors.into_iter().map(PyTensor).collect();
    Ok((shared.name, PyBytes::new(py, &shared.structure), tensors))
}

/// Withdraw a publication, or all of its versions; return how many.
#[pyfunction]
fn unpublish(py: Python<'_>, name: &str) -> PyResult<u32> {
    let session = on_server(py, "unpublish")?;
    waiting(py, &session, |interrupt| session.unpublish(name, interrupt))
}

/// Return the publications that this thread's session may read, each as a dict.
#[pyfunction]
fn list_published(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let session = on_server(py, "published")?;
    let status = waiting(py, &session, |interrupt| session.status(interrupt))?;
    convert(py, &status)
}

/// Returns the publications of a status as dicts.
pub fn convert<'py>(py: Python<'py>, status: &Status) -> PyResult<Bound<'py, PyList>> {
    let all = PyList::empty(py);
    for publication in &status.publications {
        let dict = PyDict::new(py);
        dict.set_item("name", &publication.name)?;
        dict.set_item("version", publication.version)?;
        dict.set_item("to", publication.audience.to_string())?;
        dict.set_item("description", &publication.description)?;
        dict.set_item("at", publication.at)?;
        dict.set_item("tensors", publication.tensors)?;
        dict.set_item("bytes", publication.bytes)?;
        dict.set_item("readers", publication.readers)?;
        dict.set_item("visible", publication.is_visible)?;
        dict.set_item("withdrawn", publication.is_withdrawn)?;
        all.append(dict)?;
    }
    Ok(all)
}

/// Returns this thread's session, which is on a server.
///
/// # Errors
/// Its workers run in this process: it has no others to share with.
fn on_server(py: Python<'_>, call: &str) -> PyResult<Session> {
    let handle = current::handle(py)?;
    if handle.server().is_some() {
        return wait::ready_current(py);
    }
    Err(PyConnectionError::new_err(format!(
        "{call}: the session runs on {}, which no other program uses\n  hint: start a server with `gt server` and workers with `gt worker`, and call gt.connect(ADDRESS) first",
        handle.place()
    )))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(publish_tensors, module)?)?;
    module.add_function(wrap_pyfunction!(shared_tensors, module)?)?;
    module.add_function(wrap_pyfunction!(unpublish, module)?)?;
    module.add_function(wrap_pyfunction!(list_published, module)?)
}
