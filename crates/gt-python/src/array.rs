//! Tensor data from NumPy arrays.

use std::thread;

use bytes::Bytes;
use gt::{DType, Shape, TensorData};
use numpy::{PyArray1, PyArrayDescrMethods, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;

use crate::convert;
use crate::foreign::torch_class;

/// Returns the values of a NumPy array, or of an object that NumPy can convert to one.
pub fn from_array(given: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<TensorData> {
    refuse_mask(given)?;
    if let Some(data) = plain(given, dtype) {
        return Ok(data);
    }
    let numpy = given.py().import("numpy")?;
    let readable = readable(given)?;
    let given = readable.as_ref().unwrap_or(given);
    let bits = bits_of_bfloat16(given)?;
    let mut array = numpy.call_method1("asarray", (bits.as_ref().unwrap_or(given),))?;
    let mut name: String = array.getattr("dtype")?.getattr("name")?.extract()?;
    if bits.is_some() || name == "bfloat16" {
        array = array.call_method1("view", ("uint16",))?;
        let data = from_bits(&array)?;
        let wanted = dtype.unwrap_or(DType::BF16);
        return Ok(if wanted == DType::BF16 { data } else { recode(&data, wanted) });
    }
    if let Some(wanted) = dtype.filter(|wanted| wanted.name() != name && *wanted != DType::BF16) {
        array = array.call_method1("astype", (wanted.name(),))?;
        name = wanted.name().to_string();
    }
    let own = name.parse::<DType>().map_err(|_| {
        PyTypeError::new_err(format!(
            "an array of dtype {name} cannot become a tensor\n  hint: use astype with one of bool, uint8, int8, int16, int32, int64, float16, float32, float64, complex64, complex128"
        ))
    })?;
    let dims: Vec<i64> = array.getattr("shape")?.extract()?;
    let little = array.getattr("dtype")?.call_method1("newbyteorder", ("<",))?;
    let array = numpy.call_method1("ascontiguousarray", (&array, little))?;
    let flat = array.call_method1("reshape", (-1,))?.call_method1("view", ("uint8",))?;
    let flat = flat.cast::<PyArray1<u8>>()?;
    // The only copy. It is needed because the array may change after this call.
    let bytes = Bytes::from(copied(flat.readonly().as_slice()?));
    let data = TensorData::new(own, convert::shape(&dims)?, bytes);
    let data = data.ok_or_else(|| PyValueError::new_err("the array changed while it was read"))?;
    Ok(if dtype == Some(DType::BF16) && own != DType::BF16 {
        recode(&data, DType::BF16)
    } else {
        data
    })
}

/// Refuses a masked array: tensors have no mask, and the values under it are not meant to be read.
fn refuse_mask(given: &Bound<'_, PyAny>) -> PyResult<()> {
    let is_subclass =
        given.cast::<PyUntypedArray>().is_ok() && !given.is_exact_instance_of::<PyUntypedArray>();
    if !is_subclass {
        return Ok(());
    }
    let masked = given.py().import("numpy.ma")?.getattr("MaskedArray")?;
    if given.is_instance(&masked)? {
        return Err(PyTypeError::new_err(
            "a masked array cannot become a tensor, which has no mask\n  hint: use .filled(value)",
        ));
    }
    Ok(())
}

/// Returns a PyTorch tensor with the same values that NumPy can read: without history, and with a
/// pending conjugation or negation done. `None` for other objects.
fn readable<'py>(given: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = given.py();
    let Some(class) = torch_class(py, "Tensor") else { return Ok(None) };
    if !given.is_instance(&class)? {
        return Ok(None);
    }
    if given.getattr("is_meta")?.is_truthy()? {
        return Err(PyTypeError::new_err(
            "a PyTorch tensor on the device meta has no values\n  hint: use gt.empty with its shape",
        ));
    }
    if given.getattr("is_quantized")?.is_truthy()? {
        return Err(PyTypeError::new_err(
            "a quantized PyTorch tensor cannot become a tensor\n  hint: use dequantize()",
        ));
    }
    if given.getattr("requires_grad")?.is_truthy()? {
        let category = py.get_type::<PyUserWarning>();
        let text = c"a PyTorch tensor that requires grad is copied without its history; use detach() to do so without this warning";
        PyErr::warn(py, &category, text, 1)?;
    }
    let plain = given.call_method0("detach")?.call_method0("resolve_conj")?;
    plain.call_method0("resolve_neg").map(Some)
}

/// Returns a PyTorch tensor of bfloat16, which NumPy lacks, as an int16 tensor with the same bits;
/// `None` for other objects.
fn bits_of_bfloat16<'py>(given: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Ok(dtype) = given.getattr("dtype") else { return Ok(None) };
    if given.cast::<PyUntypedArray>().is_ok() || dtype.str()? != "torch.bfloat16" {
        return Ok(None);
    }
    let int16 = given.py().import("torch")?.getattr("int16")?;
    given.call_method0("contiguous")?.call_method1("view", (int16,)).map(Some)
}

/// Returns bfloat16 values from an array of 16-bit integers with the same bits.
fn from_bits(array: &Bound<'_, PyAny>) -> PyResult<TensorData> {
    let dims: Vec<i64> = array.getattr("shape")?.extract()?;
    let numpy = array.py().import("numpy")?;
    let flat = numpy.call_method1("ascontiguousarray", (array,))?;
    let flat = flat.call_method1("reshape", (-1,))?.call_method1("view", ("uint8",))?;
    let flat = flat.cast::<PyArray1<u8>>()?;
    let bytes = Bytes::from(copied(flat.readonly().as_slice()?));
    TensorData::new(DType::BF16, convert::shape(&dims)?, bytes)
        .ok_or_else(|| PyValueError::new_err("the array changed while it was read"))
}

/// Returns the values of a contiguous NumPy array of the wanted dtype; `None` for any other object.
/// The fast path for small arrays: it avoids Python attribute lookups, which cost more than the
/// copy.
fn plain(given: &Bound<'_, PyAny>, wanted: Option<DType>) -> Option<TensorData> {
    let array = given.cast::<PyUntypedArray>().ok()?;
    let own = array.dtype();
    let dtype = match (own.kind(), own.itemsize()) {
        (b'b', 1) => DType::Bool,
        (b'u', 1) => DType::U8,
        (b'i', 1) => DType::I8,
        (b'i', 2) => DType::I16,
        (b'i', 4) => DType::I32,
        (b'i', 8) => DType::I64,
        (b'f', 2) => DType::F16,
        (b'f', 4) => DType::F32,
        (b'f', 8) => DType::F64,
        (b'c', 8) => DType::C64,
        (b'c', 16) => DType::C128,
        _ => return None,
    };
    let as_stored = own.is_native_byteorder() != Some(false) && array.is_c_contiguous();
    if wanted.is_some_and(|wanted| wanted != dtype) || !as_stored || array.is_empty() {
        return None;
    }
    let shape = Shape::new(array.shape()).ok()?;
    // SAFETY: the array is contiguous and not empty, so its data pointer is followed by the bytes
    // of all elements. It is borrowed, and no Python code that could change it runs meanwhile.
    let bytes = unsafe {
        let data = (*array.as_array_ptr()).fields.data.cast::<u8>();
        std::slice::from_raw_parts(data, array.len() * dtype.size())
    };
    // The only copy. It is needed because the array may change after this call.
    Some(TensorData { dtype, shape, bytes: Bytes::from(copied(bytes)) })
}

/// Arrays of at least this many bytes are copied by several threads: page faults of the new memory
/// limit a single thread to less than the bandwidth of a GPU's bus.
const LARGE: usize = 64 << 20;
const THREADS: usize = 8;

/// Returns a copy of the bytes.
pub fn copied(values: &[u8]) -> Vec<u8> {
    if values.len() < LARGE {
        return values.to_vec();
    }
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS);
    if threads == 1 {
        return values.to_vec();
    }
    let mut copy = vec![0; values.len()];
    let part = values.len().div_ceil(threads);
    thread::scope(|scope| {
        for (to, from) in copy.chunks_mut(part).zip(values.chunks(part)) {
            scope.spawn(move || to.copy_from_slice(from));
        }
    });
    copy
}

/// Returns the values converted to another dtype.
pub fn recode(data: &TensorData, dtype: DType) -> TensorData {
    let mut bytes = Vec::with_capacity(data.shape.numel() * dtype.size());
    for index in 0..data.shape.numel() {
        TensorData::encode(dtype, data.element(index), &mut bytes);
    }
    TensorData { dtype, shape: data.shape, bytes: Bytes::from(bytes) }
}
