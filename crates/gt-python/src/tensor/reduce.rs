//! Reductions, and other methods along an axis: softmax and cumulative sums.

use gt::ir::Operation;
use gt::ir::ops::{binary, reduce};
use pyo3::prelude::*;

use super::PyTensor;
use super::operators::apply;
use crate::error::IntoPython;
use crate::{convert, dtype, session, source};

/// An optional argument of any type.
type Given<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

fn reduced(
    py: Python<'_>,
    this: &PyTensor,
    operation: &'static Operation,
    axes: &[i64],
    keepdims: bool,
) -> PyResult<PyTensor> {
    session::ready(py, &this.0)?;
    source::note(py);
    Ok(PyTensor(this.0.reduce(operation, axes, keepdims).py()?))
}

macro_rules! reductions {
    ($($name:ident => $operation:path,)*) => {
        #[pymethods]
        impl PyTensor {
            $(#[pyo3(signature = (axis=None, keepdims=false, *, dim=None, keepdim=None))]
            fn $name(
                &self,
                py: Python<'_>,
                axis: Given<'_, '_>,
                keepdims: bool,
                dim: Given<'_, '_>,
                keepdim: Option<bool>,
            ) -> PyResult<PyTensor> {
                let axes = convert::axes(axis, dim)?;
                reduced(py, self, &$operation, &axes, keepdim.unwrap_or(keepdims))
            })*
        }
    };
}

reductions! {
    prod => reduce::PROD, amax => reduce::AMAX, amin => reduce::AMIN, argmax => reduce::ARGMAX,
    argmin => reduce::ARGMIN, any => reduce::ANY, all => reduce::ALL,
    logsumexp => gt::ir::ops::nn::LOGSUMEXP,
}

macro_rules! sums {
    ($($name:ident => $operation:path,)*) => {
        #[pymethods]
        impl PyTensor {
            $(#[pyo3(signature = (axis=None, keepdims=false, *, dim=None, keepdim=None, dtype=None))]
            fn $name(
                &self,
                py: Python<'_>,
                axis: Given<'_, '_>,
                keepdims: bool,
                dim: Given<'_, '_>,
                keepdim: Option<bool>,
                dtype: Given<'_, '_>,
            ) -> PyResult<PyTensor> {
                let axes = convert::axes(axis, dim)?;
                let keepdims = keepdim.unwrap_or(keepdims);
                match dtype::parse_optional(dtype)? {
                    Some(dtype) => {
                        let cast = PyTensor(self.0.cast(dtype).py()?);
                        reduced(py, &cast, &$operation, &axes, keepdims)
                    }
                    None => reduced(py, self, &$operation, &axes, keepdims),
                }
            })*
        }
    };
}

sums! { sum => reduce::SUM, mean => reduce::MEAN, }

macro_rules! spreads {
    ($($name:ident)*) => {
        #[pymethods]
        impl PyTensor {
            // The second positional argument is `unbiased` in PyTorch and something else in NumPy, so
            // only `axis` is positional here.
            $(#[pyo3(signature = (axis=None, *, keepdims=false, dim=None, keepdim=None, correction=1, unbiased=None))]
            #[allow(clippy::too_many_arguments)]
            fn $name(
                &self,
                py: Python<'_>,
                axis: Given<'_, '_>,
                keepdims: bool,
                dim: Given<'_, '_>,
                keepdim: Option<bool>,
                correction: i64,
                unbiased: Option<bool>,
            ) -> PyResult<PyTensor> {
                session::ready(py, &self.0)?;
                source::note(py);
                let axes = convert::axes(axis, dim)?;
                let correction = unbiased.map_or(correction, i64::from);
                Ok(PyTensor(self.0.$name(&axes, keepdim.unwrap_or(keepdims), correction).py()?))
            })*
        }
    };
}

spreads! { var std }

macro_rules! extremes {
    ($($name:ident $with_index:ident $reduction:path, $elementwise:path;)*) => {
        #[pymethods]
        impl PyTensor {
            $(#[pyo3(signature = (dim=None, keepdim=false, *, axis=None, keepdims=None))]
            fn $name(
                &self,
                py: Python<'_>,
                dim: Given<'_, '_>,
                keepdim: bool,
                axis: Given<'_, '_>,
                keepdims: Option<bool>,
            ) -> PyResult<Py<PyAny>> {
                let keepdims = keepdims.unwrap_or(keepdim);
                if let Some(other) = dim.filter(|dim| dim.is_instance_of::<PyTensor>()) {
                    let result = apply(py, &$elementwise, self, other, false)?;
                    return Ok(Py::new(py, result)?.into_any());
                }
                // PyTorch's form, `max(dim)`, returns values and indices; NumPy's, `max(axis=...)`,
                // only values.
                if let Some(dim) = dim.filter(|dim| !dim.is_none()).and_then(|dim| dim.extract::<i64>().ok()) {
                    session::ready(py, &self.0)?;
                    source::note(py);
                    let (values, indices) = self.0.$with_index(dim, keepdims).py()?;
                    let pair = py.import("gt._results")?.getattr("ValuesIndices")?;
                    return Ok(pair.call1((PyTensor(values), PyTensor(indices)))?.unbind());
                }
                let axes = convert::axes(axis, dim)?;
                let result = reduced(py, self, &$reduction, &axes, keepdims)?;
                Ok(Py::new(py, result)?.into_any())
            })*
        }
    };
}

extremes! {
    max max_with_index reduce::AMAX, binary::MAXIMUM;
    min min_with_index reduce::AMIN, binary::MINIMUM;
}

macro_rules! along {
    ($($name:ident $default:expr,)*) => {
        #[pymethods]
        impl PyTensor {
            $(#[pyo3(signature = (axis=None, *, dim=None))]
            fn $name(&self, py: Python<'_>, axis: Option<i64>, dim: Option<i64>) -> PyResult<PyTensor> {
                let axis = convert::axis(axis, dim, $default)?;
                session::ready(py, &self.0)?;
                source::note(py);
                Ok(PyTensor(self.0.$name(axis).py()?))
            })*
        }
    };
}

along! { softmax Some(-1), log_softmax Some(-1), cumsum None, }
