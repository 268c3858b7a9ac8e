//! `x[...]` and `x[...] = value`.

use gt::DType;
use gt::tensor::elementwise;
use gt::tensor::index::Index;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyUserWarning};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PyList, PyRange, PySlice, PyTuple};

use super::{PyOperand, PyTensor};
use crate::error::IntoPython;
use crate::number::element;
use crate::{convert, session, source};

/// The warning for uint8 masks, which PyTorch still accepts.
const UINT8_MASK: &std::ffi::CStr =
    c"indexing: a uint8 tensor is taken as a mask, which is deprecated\n  hint: use .bool() for a mask, .long() for indices";

/// Returns the error for an object that is no place in a slice.
#[cold]
fn unsliceable(given: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!("indexing: a slice must have ints or None, not {}", shown(given)))
}

/// Returns the error for an object that cannot be assigned to elements of a tensor.
#[cold]
fn unassignable(this: &gt::Tensor, given: &Bound<'_, PyAny>) -> PyErr {
    let (dtype, given) = (this.dtype(), shown(given));
    PyTypeError::new_err(format!(
        "indexing: cannot assign {given} to a {dtype} tensor, expected a tensor, a number or an array"
    ))
}

/// Returns an object's type, and the object if it is short.
fn shown(given: &Bound<'_, PyAny>) -> String {
    let kind = given.get_type().name().map_or_else(|_| "this".into(), |name| name.to_string());
    match given.repr() {
        Ok(text) if text.len().is_ok_and(|length| length <= 40) => format!("{kind} {text}"),
        _ => kind,
    }
}

/// Converts one entry of an index.
fn entry(this: &PyTensor, given: &Bound<'_, PyAny>) -> PyResult<Index> {
    if given.is_none() {
        return Ok(Index::NewAxis);
    }
    if given.is_instance_of::<PyEllipsis>() {
        return Ok(Index::Ellipsis);
    }
    if let Ok(slice) = given.cast::<PySlice>() {
        let part = |name: &str| -> PyResult<Option<i64>> {
            let value = slice.getattr(name)?;
            if value.is_none() {
                return Ok(None);
            }
            let whole = value.call_method0("__index__").and_then(|whole| whole.extract());
            whole.map(Some).map_err(|_| unsliceable(&value))
        };
        let step = part("step")?.unwrap_or(1);
        return Ok(Index::Slice { start: part("start")?, stop: part("stop")?, step });
    }
    if let Ok(value) = given.cast::<PyBool>() {
        return Ok(Index::Bool(value.is_true()));
    }
    if given.is_instance_of::<PyInt>() {
        let at = given.extract().map_err(|_| {
            let shape = this.0.shape();
            PyIndexError::new_err(format!("indexing: {given} is out of range for shape {shape}"))
        })?;
        return Ok(Index::At(at));
    }
    let tensor = if let Ok(tensor) = given.cast::<PyTensor>() {
        tensor.get().0.clone()
    } else if is_sequence(given) || given.hasattr("__array__")? {
        // Lists of numbers in an index become int64, not float32 as elsewhere.
        let session = this.0.session();
        let plain = convert::tensor(&session, given, None)?;
        if plain.dtype() == DType::F32 && is_sequence(given) {
            convert::tensor(&session, given, Some(DType::I64))?
        } else {
            plain
        }
    } else {
        return Err(PyTypeError::new_err(format!(
            "indexing: an index must be an int, slice, None, ..., bool or integer tensor, not {}",
            given.get_type().name()?
        )));
    };
    if tensor.dtype().is_float() {
        return Err(PyIndexError::new_err(format!(
            "indexing: an index tensor must be of an integer dtype or bool, not {}\n  hint: gt.tensor([...], dtype=gt.int64)",
            tensor.dtype()
        )));
    }
    if tensor.dtype() == DType::U8 {
        let warning = given.py().get_type::<PyUserWarning>();
        PyErr::warn(given.py(), &warning, UINT8_MASK, 1)?;
        return Ok(Index::Tensor(tensor.cast(DType::Bool).py()?));
    }
    Ok(Index::Tensor(tensor))
}

/// Whether an entry of an index is a sequence of indices.
fn is_sequence(given: &Bound<'_, PyAny>) -> bool {
    given.is_instance_of::<PyList>()
        || given.is_instance_of::<PyTuple>()
        || given.is_instance_of::<PyRange>()
}

fn entries(this: &PyTensor, key: &Bound<'_, PyAny>) -> PyResult<Vec<Index>> {
    match key.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().map(|given| entry(this, &given)).collect(),
        Err(_) => Ok(vec![entry(this, key)?]),
    }
}

#[pymethods]
impl PyTensor {
    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
        session::ready(py, &self.0)?;
        source::note(py);
        let entries = entries(self, key)?;
        let part =
            session::waiting(py, &self.0.session(), |interrupt| self.0.index(&entries, interrupt))?;
        Ok(PyTensor(part))
    }

    fn __setitem__(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        session::ready(py, &self.0)?;
        source::note(py);
        let entries = entries(self, key)?;
        let given = element("indexing", value, self.0.dtype())?;
        let value = PyOperand::parse_any(|| Ok(self.0.session()), || self.0.dtype(), &given)?
            .ok_or_else(|| unassignable(&self.0, value))?;
        let tensor = match &value {
            PyOperand::Tensor(tensor) => Some(tensor.get().0.clone()),
            PyOperand::Converted(tensor) => Some(tensor.clone()),
            PyOperand::Scalar(_) => None,
        };
        let scalar = match value {
            PyOperand::Scalar(scalar) => Some(scalar),
            _ => None,
        };
        session::waiting(py, &self.0.session(), |interrupt| {
            let value = match (&tensor, scalar) {
                (Some(tensor), _) => elementwise::Value::from(tensor),
                (None, Some(scalar)) => elementwise::Value::from(scalar),
                (None, None) => unreachable!("a value is a tensor or a number"),
            };
            self.0.set_index(&entries, value, interrupt)
        })
    }

    fn __iter__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let (py, tensor) = (slf.py(), &slf.get().0);
        let length = tensor.shape().first().copied();
        let length = length.ok_or_else(|| PyTypeError::new_err("iteration over a 0-d tensor"))?;
        let rows = if tensor.rank() == 1 {
            source::note(py);
            let elements = tensor.elements().py()?.map(|element| {
                session::ready(py, tensor)?;
                Bound::new(py, PyTensor(element.py()?)).map(Bound::into_any)
            });
            elements.collect::<PyResult<Vec<_>>>()?
        } else {
            (0..length as i64).map(|row| slf.get_item(row)).collect::<PyResult<Vec<_>>>()?
        };
        Ok(PyList::new(py, rows)?.try_iter()?.into_any().unbind())
    }

    /// Return the indices of the nonzero elements as an int64 tensor of shape (count, ndim). Waits
    /// for the values.
    fn nonzero(&self, py: Python<'_>) -> PyResult<PyTensor> {
        source::note(py);
        Ok(PyTensor(session::waiting(py, &self.0.session(), |interrupt| {
            self.0.nonzero(interrupt)
        })?))
    }
}
