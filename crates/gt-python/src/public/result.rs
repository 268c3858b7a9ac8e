//! What a public function returns to the user that runs GT's Python code later: functions become
//! public functions, and generators and context managers show errors as they do.

use std::ptr;

use pyo3::PyTraverseError;
use pyo3::PyVisit;
use pyo3::exceptions::PyStopIteration;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};

use super::present::{ShownName, present};
use crate::source;

/// A generator of GT's own code.
#[pyclass(name = "generator", module = "gt", frozen, weakref)]
pub struct PublicGenerator(Py<PyAny>);

/// Returns the public function of a Python function.
pub type Make = for<'py> fn(Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>;

/// Returns a result as the user gets it.
///
/// # Safety
/// Python holds the GIL; the result is an object, whose reference the caller gives away.
pub unsafe fn public_result(result: *mut ffi::PyObject, make: Make) -> *mut ffi::PyObject {
    // SAFETY: as for this function.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: the result is an object.
    let kind = unsafe { ffi::Py_TYPE(result) };
    let Ok(kinds) = kinds(py) else { return result };
    let Some(place) = kinds.iter().position(|of| of.as_ptr() == kind.cast()) else { return result };
    // SAFETY: the caller gives the reference away.
    let result = unsafe { Bound::from_owned_ptr(py, result) };
    let made = match place {
        0 => public_closure(&result, make),
        1 => public_generator(&result),
        _ => public_context(&result),
    };
    // A failure leaves the result as it was.
    made.unwrap_or(result).into_ptr()
}

/// The types of functions, generators and context managers that generators define.
fn kinds(py: Python<'_>) -> PyResult<&[Py<PyAny>; 3]> {
    static KINDS: PyOnceLock<[Py<PyAny>; 3]> = PyOnceLock::new();
    KINDS.get_or_try_init(py, || {
        let types = py.import("types")?;
        let context = py.import("contextlib")?.getattr("_GeneratorContextManager")?;
        let function = types.getattr("FunctionType")?;
        Ok([function.unbind(), types.getattr("GeneratorType")?.unbind(), context.unbind()])
    })
}

/// Returns the type of plain functions.
pub fn function_type(py: Python<'_>) -> PyResult<&Py<PyAny>> {
    kinds(py).map(|[function, ..]| function)
}

/// Finds the types now: see `source::register`.
pub fn register(py: Python<'_>) -> PyResult<()> {
    kinds(py).map(|_| ())
}

fn public_closure<'py>(closure: &Bound<'py, PyAny>, make: Make) -> PyResult<Bound<'py, PyAny>> {
    let own = source::is_own_code(&closure.getattr(intern!(closure.py(), "__code__"))?);
    if own { make(closure.clone()) } else { Ok(closure.clone()) }
}

fn public_generator<'py>(generator: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = generator.py();
    let own = source::is_own_code(&generator.getattr(intern!(py, "gi_code"))?);
    if !own || source::is_called_by_gt(py) {
        return Ok(generator.clone());
    }
    Ok(Bound::new(py, PublicGenerator(generator.clone().unbind()))?.into_any())
}

/// Gives a context manager that a generator of GT's defines the class whose errors are shown.
fn public_context<'py>(context: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = context.py();
    let generator = context.getattr(intern!(py, "gen"))?;
    if source::is_own_code(&generator.getattr(intern!(py, "gi_code"))?) {
        context.setattr(intern!(py, "__class__"), CLASS.import(py, "gt._public", "Context")?)?;
    }
    Ok(context.clone())
}

impl PublicGenerator {
    /// Returns a result, or an error as the user sees it.
    fn shown<'py>(
        py: Python<'py>,
        result: PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        result.map_err(|error| {
            let is_users = !source::is_called_by_gt(py);
            present(py, error, &ShownName::new(None), is_users)
        })
    }

    fn call<'py>(&self, name: &str, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        Self::shown(py, self.0.bind(py).call_method1(name, args))
    }
}

#[pymethods]
impl PublicGenerator {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut value = ptr::null_mut();
        // SAFETY: the generator is an object; Python sets `value` to an owned object or null.
        let (state, value) = unsafe {
            let state = ffi::PyIter_Send(self.0.as_ptr(), ffi::Py_None(), &raw mut value);
            (state, Bound::from_owned_ptr_or_opt(py, value))
        };
        match (state, value) {
            (ffi::PySendResult::PYGEN_NEXT, Some(value)) => Ok(value),
            (ffi::PySendResult::PYGEN_RETURN, Some(value)) if value.is_none() => {
                Err(PyStopIteration::new_err(()))
            }
            (ffi::PySendResult::PYGEN_RETURN, Some(value)) => {
                Err(PyStopIteration::new_err((value.unbind(),)))
            }
            _ => Self::shown(py, Err(PyErr::fetch(py))),
        }
    }

    #[pyo3(signature = (*args))]
    fn send<'py>(&self, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        self.call("send", args)
    }

    #[pyo3(signature = (*args))]
    fn throw<'py>(&self, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        self.call("throw", args)
    }

    fn close<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.call("close", &PyTuple::empty(py))
    }

    /// The type of plain generators, so that `isinstance` takes this one for one.
    #[getter]
    fn __class__(&self, py: Python<'_>) -> Py<PyType> {
        self.0.bind(py).get_type().unbind()
    }

    /// Return an attribute of the plain generator.
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.0.bind(py).getattr(name)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.0.bind(py).repr()?.to_string())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.0)
    }
}
