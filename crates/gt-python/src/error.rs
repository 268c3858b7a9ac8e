//! The client's errors as Python exceptions.

use gt::ir;
use gt::{CallbackError, ClientError};
use pyo3::create_exception;
use pyo3::exceptions::{
    PyConnectionError, PyIndexError, PyKeyboardInterrupt, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

use crate::foreign;

create_exception!(gt, WorkerError, PyRuntimeError, "An operation failed on a worker.");
create_exception!(
    gt,
    OutOfMemoryError,
    WorkerError,
    "The memory of a worker, or the user's quota on it, did not suffice for an operation."
);

/// Returns the exception for an error: IndexError for axes and indices, TypeError for dtypes,
/// ValueError for shapes and values, WorkerError for failures on a worker, ConnectionError for
/// connections.
pub fn to_python(error: ClientError) -> PyErr {
    use ir::Error;
    let text = error.to_string();
    match error {
        ClientError::Invalid(
            Error::BadAxis { .. }
            | Error::BadIndex { .. }
            | Error::TooManyIndices { .. }
            | Error::MaskShape { .. }
            | Error::IndexShapes { .. }
            | Error::RepeatedEllipsis,
        ) => PyIndexError::new_err(text),
        ClientError::Invalid(Error::UnknownDType { .. } | Error::DTypeMismatch { .. }) => {
            PyTypeError::new_err(text)
        }
        ClientError::Invalid(_) => PyValueError::new_err(text),
        ClientError::Usage(_) | ClientError::WindowFull => PyRuntimeError::new_err(text),
        ClientError::Failed { failure, location } => {
            let location = location.as_deref();
            let mut text = gt::failed_text(&failure, location, &variable);
            if let Some(line) = location.and_then(line_text) {
                text = format!("{text}\n    {line}");
            }
            let class = if failure.bad_index().is_some() {
                bad_index
            } else if failure.is_of_memory() {
                out_of_memory
            } else {
                return WorkerError::new_err(text);
            };
            Python::attach(|py| match class(py) {
                Ok(kind) => PyErr::from_type(kind.clone(), text),
                Err(error) => error,
            })
        }
        ClientError::Connection(_) => PyConnectionError::new_err(text),
        ClientError::Callback(CallbackError(error)) => match error.downcast_ref::<PyErr>() {
            Some(raised) => Python::attach(|py| raised.clone_ref(py)),
            None => PyRuntimeError::new_err(text),
        },
        ClientError::Interrupted => PyKeyboardInterrupt::new_err(text),
    }
}

/// Returns the name of the variable that is assigned on a line, given as `file:line`.
fn variable(line: &str) -> Option<String> {
    of_line("variable", line)
}

/// Returns the text of a line, given as `file:line`.
fn line_text(line: &str) -> Option<String> {
    of_line("text", line)
}

/// Returns what a function of `gt._lines` finds for a line.
fn of_line(function: &str, line: &str) -> Option<String> {
    Python::attach(|py| {
        let lines = py.import("gt._lines").ok()?;
        lines.call_method1(function, (line,)).ok()?.extract().ok()?
    })
}

/// Returns the exception class for an index that a worker found out of range: a subclass of both
/// WorkerError and IndexError.
pub fn bad_index(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static KIND: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let made = KIND.get_or_try_init(py, || {
        let bases = (py.get_type::<WorkerError>(), py.get_type::<PyIndexError>());
        let members = PyDict::new(py);
        members.set_item("__module__", "gt")?;
        members.set_item("__doc__", "A worker found an index out of range.")?;
        let kind = py.get_type::<PyType>().call1(("WorkerIndexError", bases, members))?;
        Ok::<_, PyErr>(kind.cast_into::<PyType>()?.unbind())
    });
    made.map(|kind| kind.bind(py))
}

/// Returns the exception class for lack of memory. In a program that has imported PyTorch, it is a
/// subclass of PyTorch's class as well.
fn out_of_memory(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static BOTH: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    if foreign::torch_class(py, "OutOfMemoryError").is_none() {
        static OWN: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let own = OWN.get_or_init(py, || py.get_type::<OutOfMemoryError>().unbind());
        return Ok(own.bind(py));
    }
    let both = BOTH.get_or_try_init(py, || {
        let module = py.import("gt.integrations.pytorch")?;
        Ok::<_, PyErr>(module.getattr("OutOfMemoryError")?.cast_into::<PyType>()?.unbind())
    });
    both.map(|kind| kind.bind(py))
}

/// Wraps an exception of a user's function, to pass it through the client.
pub fn from_python(error: PyErr) -> ClientError {
    ClientError::Callback(CallbackError(std::sync::Arc::new(error)))
}

/// Conversion of the client's results to Python's.
pub trait IntoPython<T> {
    fn py(self) -> PyResult<T>;
}

impl<T> IntoPython<T> for gt::Result<T> {
    fn py(self) -> PyResult<T> {
        self.map_err(to_python)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("WorkerError", module.py().get_type::<WorkerError>())?;
    module.add("OutOfMemoryError", module.py().get_type::<OutOfMemoryError>())?;
    module.add("WorkerIndexError", bad_index(module.py())?)
}
