//! Attributes of a tensor, and fetching its values.

use std::sync::{Mutex, OnceLock, PoisonError};

use gt::{Asked, Session, Shape, TensorData};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyFloat, PyTuple, PyType};

use super::{PyOperand, PyTensor};
use crate::dtype::PyDType;
use crate::error::IntoPython;
use crate::{argument, dtype, export, session, source};

/// The error for a branch that depends on a tensor mapped over by `vmap`.
const CONTROL_FLOW: &str = "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that yet\n  hint: gt.where(condition, a, b) computes both sides";

/// Requested values.
pub enum ValueRequest {
    Known(TensorData),
    Asked(Asked, Session),
}

impl ValueRequest {
    /// Waits for the values and returns them.
    pub fn wait(self, py: Python<'_>) -> PyResult<TensorData> {
        match self {
            ValueRequest::Known(data) => Ok(data),
            ValueRequest::Asked(asked, session) => {
                session::waiting(py, &session, |interrupt| asked.wait(interrupt))
            }
        }
    }
}

impl PyTensor {
    /// Requests the values, to wait for them later.
    pub fn request_values(&self, py: Python<'_>) -> PyResult<ValueRequest> {
        if let Some(data) = self.0.at_hand() {
            return Ok(ValueRequest::Known(data));
        }
        source::note(py);
        // The GIL is held, so no other thread can fork while this call holds a lock of the session.
        let asked = self.0.ask().or_else(|error| session::at_exit(py, error))?;
        Ok(ValueRequest::Asked(asked, self.0.session()))
    }

    /// Requests the values and waits for them.
    pub fn fetch(&self, py: Python<'_>) -> PyResult<TensorData> {
        self.request_values(py)?.wait(py)
    }

    /// Whether the tensor can be an index: it has one element, of an integer dtype or bool.
    pub fn is_index(&self) -> bool {
        let dtype = self.0.dtype();
        !dtype.is_float() && !dtype.is_complex() && self.0.shape().numel() == 1
    }

    fn one_element(&self, py: Python<'_>, what: &str) -> PyResult<gt::Scalar> {
        let data = self.fetch_one(py, what)?;
        if !data.dtype.is_complex() || data.complex(0).1 == 0.0 {
            return Ok(data.element(0));
        }
        Err(PyRuntimeError::new_err(format!(
            "{what}: the value {} + {}j cannot be converted without loss\n  hint: take .real, .imag or .abs() first",
            data.complex(0).0,
            data.complex(0).1
        )))
    }

    fn fetch_one(&self, py: Python<'_>, what: &str) -> PyResult<gt::TensorData> {
        let shape = self.0.shape();
        if shape.numel() != 1 {
            return Err(PyValueError::new_err(format!(
                "{what}: a tensor of shape {shape} has {} elements, not one\n  hint: index or reduce it first",
                shape.numel()
            )));
        }
        if self.0.is_batched() {
            self.0.check_has_values(&format!(".{what}()")).py()?;
        }
        self.fetch(py)
    }
}

/// Returns the class `gt.Size`.
fn size_type(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    // Not PyO3's cell, whose initialization could be interrupted by a fork.
    static SIZE: OnceLock<Py<PyAny>> = OnceLock::new();
    let size = match SIZE.get() {
        Some(size) => size,
        None => {
            let found = py.import("gt._size")?.getattr("Size")?.unbind();
            SIZE.get_or_init(|| found)
        }
    };
    Ok(size.bind(py))
}

/// A cache of recent `Size` objects, indexed by a hash of the lengths. They are immutable, and
/// finding one takes a twentieth of the time of creating it. Locked only with the GIL held.
static SIZES: Mutex<[Option<(Shape, Py<PyTuple>)>; 64]> = Mutex::new([const { None }; 64]);

/// Returns a shape as `gt.Size`.
fn size<'py>(py: Python<'py>, shape: &Shape) -> PyResult<Bound<'py, PyTuple>> {
    let dims = shape.dims();
    let place = dims.iter().fold(dims.len(), |sum, dim| sum.wrapping_mul(31).wrapping_add(*dim));
    let mut sizes = SIZES.lock().unwrap_or_else(PoisonError::into_inner);
    let known = &mut sizes[place % 64];
    if let Some((of, size)) = known
        && of == shape
    {
        return Ok(size.bind(py).clone());
    }
    // The call runs Python code, which may call this function.
    drop(sizes);
    let size = size_type(py)?.call1((PyTuple::new(py, dims)?,))?.cast_into::<PyTuple>()?;
    let mut sizes = SIZES.lock().unwrap_or_else(PoisonError::into_inner);
    let before = sizes[place % 64].replace((*shape, size.clone().unbind()));
    drop(sizes);
    drop(before);
    Ok(size)
}

#[pymethods]
impl PyTensor {
    /// Create a tensor like PyTorch's legacy constructor: from values, or of given lengths. A
    /// subclass called with one tensor creates an instance that shares its memory.
    #[new]
    #[classmethod]
    #[pyo3(signature = (*data))]
    fn new(cls: &Bound<'_, PyType>, data: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let py = cls.py();
        if !cls.is(py.get_type::<PyTensor>())
            && data.len() == 1
            && let Ok(tensor) = data.get_item(0)?.cast::<PyTensor>()
        {
            return Ok(PyTensor(tensor.get().0.detach()));
        }
        let made = py.import("gt._legacy")?.call_method1("public_new_tensor", (data,))?;
        Ok(PyTensor(made.cast::<PyTensor>()?.get().0.clone()))
    }

    /// The lengths of the axes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        size(py, &self.0.shape())
    }

    /// Return the shape, or the length of one axis.
    #[pyo3(signature = (dim=None))]
    fn size(&self, py: Python<'_>, dim: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        let shape = self.shape(py)?;
        match dim {
            None => Ok(shape.into_any().unbind()),
            Some(dim) => {
                let dim = argument::axis("size", "dim", dim)?;
                let axis = gt::ir::shape::axis(dim, self.0.rank(), "size")
                    .map_err(|error| crate::error::to_python(error.into()))?;
                Ok(shape.get_item(axis)?.unbind())
            }
        }
    }

    /// The dtype of the elements.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Py<PyDType>> {
        dtype::to_python(py, self.0.dtype())
    }

    /// The number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.0.rank()
    }

    /// Return the number of axes.
    fn dim(&self) -> usize {
        self.0.rank()
    }

    /// Return the number of elements.
    fn numel(&self) -> usize {
        self.0.shape().numel()
    }

    /// The tensor without its history. In-place changes of it change this tensor, unnoticed by
    /// autograd.
    #[getter]
    fn data(&self) -> PyTensor {
        PyTensor(self.0.data())
    }

    #[setter]
    fn set_data(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.set_data(&PyOperand::tensor(&self.0, value, "data")?).py()
    }

    /// Return the only element as a Python number. Waits until it is computed.
    fn item(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        export::element(py, &self.fetch_one(py, "item")?, 0)
    }

    /// Return the values as nested lists. Waits until they are computed.
    fn tolist(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        export::to_list(py, &self.fetch(py)?)
    }

    fn __float__(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(self.one_element(py, "float")?.as_f64())
    }

    fn __complex__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let data = self.fetch_one(py, "complex")?;
        let (real, imaginary) = data.complex(0);
        Ok(PyComplex::from_doubles(py, real, imaginary).into_any().unbind())
    }

    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.one_element(py, "int")? {
            // Python's errors for infinities and NaN, and integers of any size.
            gt::Scalar::Float(value) => PyFloat::new(py, value).call_method0("__int__"),
            value => Ok(value.as_i64().into_pyobject(py)?.into_any()),
        }
    }

    fn __index__(&self, py: Python<'_>) -> PyResult<i64> {
        let (dtype, shape) = (self.0.dtype(), self.0.shape());
        if !self.is_index() {
            let hint = if shape.numel() == 1 { "convert it by int()" } else { "index it first" };
            return Err(PyTypeError::new_err(format!(
                "only integer tensors of a single element can be converted to an index, this one is {dtype} of shape {shape}\n  hint: {hint}"
            )));
        }
        Ok(self.one_element(py, "index")?.as_i64())
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        let shape = self.0.shape();
        if shape.numel() != 1 {
            let count = if shape.numel() == 0 { "no values" } else { "more than one value" };
            return Err(PyRuntimeError::new_err(format!(
                "Boolean value of Tensor with {count} is ambiguous, its shape is {shape}\n  hint: use any() or all()"
            )));
        }
        if self.0.is_batched() {
            return Err(PyRuntimeError::new_err(CONTROL_FLOW));
        }
        let data = self.fetch_one(py, "bool")?;
        Ok(data.complex(0) != (0.0, 0.0))
    }

    fn __len__(&self) -> PyResult<usize> {
        self.0.shape().first().copied().ok_or_else(|| PyTypeError::new_err("len() of a 0-d tensor"))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let text = slf.py().import("gt._text")?.call_method1("tensor_text", (slf,))?;
        text.extract()
    }

    fn __format__(slf: &Bound<'_, Self>, spec: &str) -> PyResult<String> {
        let py = slf.py();
        // As in PyTorch, a subclass is formatted as any object: a parameter shows what it is.
        let is_plain = slf.is_exact_instance_of::<PyTensor>();
        if slf.get().0.rank() == 0 && is_plain {
            return slf.get().item(py)?.bind(py).call_method1("__format__", (spec,))?.extract();
        }
        if spec.is_empty() {
            return Ok(slf.str()?.to_string());
        }
        let (kind, shape) = (slf.get_type().name()?, slf.get().0.shape());
        let hint = if is_plain { "index it first" } else { "format its item()" };
        Err(PyTypeError::new_err(format!(
            "unsupported format string passed to {kind}.__format__: '{spec}', for shape {shape}\n  hint: {hint}, or use str()"
        )))
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<PyTensor> {
        self.clone(py)
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
        if !self.0.is_leaf() {
            return Err(PyRuntimeError::new_err(
                "deepcopy: a tensor that is the result of others has a history, which is not copied\n  hint: detach() or clone() it",
            ));
        }
        let copy = self.0.without_history();
        copy.set_requires_grad(self.0.requires_grad()).py()?;
        if let Some(grad) = self.0.grad() {
            copy.set_grad(Some(grad.without_history())).py()?;
        }
        Ok(PyTensor(copy))
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Ok(slf.py().import("gt._pickle")?.call_method1("reduce", (slf,))?.unbind())
    }

    /// Return a copy; gradients flow back to this tensor.
    fn clone(&self, py: Python<'_>) -> PyResult<PyTensor> {
        source::note(py);
        Ok(PyTensor(self.0.copy().py()?))
    }

    /// The tensor's number in the instruction stream, as the log shows it.
    #[getter]
    fn id(&self) -> u64 {
        self.0.id()
    }
}
