//! Changes in place.

use gt::{Scalar, Tensor};
use pyo3::prelude::*;

use super::PyTensor;
use crate::error::IntoPython;
use crate::{session, source};

#[pymethods]
impl PyTensor {
    /// Takes over the value and history of another tensor of the same shape: what every operation
    /// in place ends with. `operation` is named in errors.
    fn _assign(slf: &Bound<'_, Self>, value: &PyTensor, operation: &str) -> PyResult<Py<PyTensor>> {
        source::note(slf.py());
        slf.get().0.assign(&value.0, operation).py()?;
        Ok(slf.clone().unbind())
    }

    /// Becomes another tensor, of any shape: what operations in place that rearrange end with.
    fn _become(slf: &Bound<'_, Self>, other: &PyTensor) -> Py<PyTensor> {
        slf.get().0.become_other(&other.0);
        slf.clone().unbind()
    }

    /// Sets all elements to zero.
    fn zero_(slf: &Bound<'_, Self>) -> PyResult<Py<PyTensor>> {
        fill(slf, Scalar::Int(0))
    }

    /// Sets all elements to one number.
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

    /// Takes the values of another tensor, which broadcasts.
    fn copy_(slf: &Bound<'_, Self>, source: &PyTensor) -> PyResult<Py<PyTensor>> {
        let this = &slf.get().0;
        session::ready(slf.py(), this)?;
        source::note(slf.py());
        let mut value = source.0.cast(this.dtype()).py()?;
        if value.shape() != this.shape() {
            let dims: Vec<i64> = this.shape().iter().map(|&dim| dim as i64).collect();
            value = value.expand(&dims).py()?;
        }
        this.assign(&value, "copy_").py()?;
        Ok(slf.clone().unbind())
    }

    /// Adds tensor * value in place, in one instruction.
    #[pyo3(signature = (tensor, value))]
    fn add_scaled_(slf: &Bound<'_, Self>, tensor: &PyTensor, value: f64) -> PyResult<Py<PyTensor>> {
        let this = &slf.get().0;
        session::ready(slf.py(), this)?;
        source::note(slf.py());
        let moved = this.mul_add(&tensor.0, value).py()?;
        this.assign(&moved, "add_scaled_").py()?;
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
