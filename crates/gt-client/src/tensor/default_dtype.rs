//! The dtype of new tensors of floats: float32, unless the process sets another.

use std::sync::atomic::{AtomicU8, Ordering};

use gt_ir::{DType, Error, Scalar};

use crate::error::Result;

static CODE: AtomicU8 = AtomicU8::new(DType::F32 as u8);

/// Returns the dtype of new tensors of floats, and of float results of integers.
#[inline]
pub fn default_dtype() -> DType {
    DType::ALL[usize::from(CODE.load(Ordering::Relaxed))]
}

/// Sets the dtype of new tensors of floats, for all threads.
///
/// # Errors
/// Not a float dtype.
pub fn set_default_dtype(dtype: DType) -> Result<()> {
    if !dtype.is_float() {
        let expected = "a float dtype";
        let operation = "set_default_dtype";
        return Err(Error::DTypeMismatch { operation, given: dtype, expected }.into());
    }
    CODE.store(dtype as u8, Ordering::Relaxed);
    Ok(())
}

/// Returns the dtype of a new tensor of a number.
pub fn dtype_of(value: Scalar) -> DType {
    match value {
        Scalar::Float(_) => default_dtype(),
        value => value.default_dtype(),
    }
}
