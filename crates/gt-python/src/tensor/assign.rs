//! In-place changes.

use gt::{Scalar, Tensor};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::{PyOperand, PyTensor};
use crate::error::IntoPython;
use crate::{argument, session, source};

#[pymethods]
impl PyTensor {
    /// Assign the value and history of another tensor of the same shape, and return this tensor.
    /// Every in-place operation ends with it; errors name `operation`.
    fn _assign(
        slf: &Bound<'_, Self>,
        value: &Bound<'_, PyAny>,
        operation: &str,
    ) -> PyResult<Py<PyTensor>> {
        source::note(slf.py());
        let this = &slf.get().0;
        this.assign(&PyOperand::tensor(this, value, operation)?, operation).py()?;
        Ok(slf.clone().unbind())
    }

    /// Become another tensor of any shape, and return this tensor. In-place operations that change
    /// the shape end with it.
    fn _become(slf: &Bound<'_, Self>, other: &PyTensor) -> Py<PyTensor> {
        slf.get().0.become_other(&other.0);
        slf.clone().unbind()
    }

    /// Set all elements to zero, and return the tensor.
    fn zero_(slf: &Bound<'_, Self>) -> PyResult<Py<PyTensor>> {
        fill(slf, Scalar::Int(0))
    }

    /// Set all elements to one number, and return the tensor.
    fn fill_(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyTensor>> {
        let this = &slf.get().0;
        session::ready(slf.py(), this)?;
        source::note(slf.py());
        let filled = crate::create::filled::filled(
            &this.session(),
            this.shape(),
            value,
            Some(this.dtype()),
        )?;
        this.assign(&filled, "fill_").py()?;
        Ok(slf.clone().unbind())
    }

    /// Copy the values of another tensor or array, which is broadcast and cast, and return this tensor.
    fn copy_(slf: &Bound<'_, Self>, source: &Bound<'_, PyAny>) -> PyResult<Py<PyTensor>> {
        let this = &slf.get().0;
        session::ready(slf.py(), this)?;
        source::note(slf.py());
        let mut value = PyOperand::tensor(this, source, "copy_")?.cast(this.dtype()).py()?;
        if value.shape() != this.shape() {
            let dims: Vec<i64> = this.shape().iter().map(|&dim| dim as i64).collect();
            value = value.expand(&dims).py().map_err(|error| {
                if !error.is_instance_of::<PyValueError>(slf.py()) {
                    return error;
                }
                let (given, own) = (value.shape(), this.shape());
                PyValueError::new_err(format!(
                    "copy_: shape {given} does not broadcast to {own}, the shape of the tensor"
                ))
            })?;
        }
        this.assign(&value, "copy_").py()?;
        Ok(slf.clone().unbind())
    }

    /// Add `tensor * value` in place, in one instruction, and return this tensor.
    #[pyo3(signature = (tensor, value))]
    fn add_scaled_(
        slf: &Bound<'_, Self>,
        tensor: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyTensor>> {
        let this = &slf.get().0;
        let value = argument::number("add_scaled_", "value", value)?;
        session::ready(slf.py(), this)?;
        source::note(slf.py());
        let tensor = PyOperand::tensor(this, tensor, "add_scaled_")?;
        let sum = this.mul_add(&tensor, value).py()?;
        this.assign(&sum, "add_scaled_").py()?;
        Ok(slf.clone().unbind())
    }
}

fn fill(slf: &Bound<'_, PyTensor>, value: Scalar) -> PyResult<Py<PyTensor>> {
    let this = &slf.get().0;
    let session = session::ready_session(slf.py(), this)?;
    source::note(slf.py());
    let filled = Tensor::full(&session, this.shape(), value, this.dtype()).py()?;
    this.assign(&filled, "fill_").py()?;
    Ok(slf.clone().unbind())
}
