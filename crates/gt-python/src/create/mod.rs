//! Functions that create tensors.
//!
//! - [`data`]: from Python numbers, lists and arrays.
//! - [`filled`]: filled with one number or with random numbers.
//! - [`sequence`]: ranges of numbers, and the identity matrix.
//! - [`combine`]: from several tensors; helpers for shapes and axes.

mod combine;
mod data;
pub(crate) mod filled;
mod sequence;

use gt::{Scalar, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::convert;
use crate::error::IntoPython;
use crate::tensor::PyTensor;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    macro_rules! add {
        ($($part:ident::{$($name:ident),* $(,)?},)*) => {
            $($(module.add_function(wrap_pyfunction!($part::$name, module)?)?;)*)*
        };
    }
    add!(
        data::{tensor, tensor_beside, as_tensor, from_numpy, from_bytes, to_bytes},
        filled::{zeros, empty, ones, rand, randn, full, randint},
        filled::{zeros_like, empty_like, ones_like, rand_like, randn_like, full_like, randint_like},
        sequence::{arange, arange_beside, linspace, eye},
        combine::{cat, stack, select, broadcast_shapes, normalize_axis},
    );
    Ok(())
}

/// Wraps a new tensor, and sets `requires_grad` if requested.
fn finish(tensor: Tensor, requires_grad: bool) -> PyResult<PyTensor> {
    if !requires_grad {
        return Ok(PyTensor(tensor));
    }
    tensor.set_requires_grad(true).py()?;
    Ok(PyTensor(tensor))
}

/// Returns a number, or the element of a tensor or array of one element; errors name `name`.
pub fn number(given: &Bound<'_, PyAny>, name: &str) -> PyResult<Scalar> {
    if let Some(value) = convert::scalar(given)? {
        return Ok(value);
    }
    if given.hasattr("item")?
        && let Some(value) = convert::scalar(&given.call_method0("item")?)?
    {
        return Ok(value);
    }
    Err(PyTypeError::new_err(format!("{name} must be a number, not {}", given.get_type().name()?)))
}
