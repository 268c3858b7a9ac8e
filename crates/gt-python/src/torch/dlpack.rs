//! DLPack's structures, and PyTorch's functions for passing tensors by them.
//! Source: dlpack.h, version 1.3, <https://github.com/dmlc/dlpack>.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use bytes::Bytes;
use gt::{DType, Scalar, Shape, TensorData};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;

/// `kDLCPU`.
pub const CPU: i32 = 1;
/// `kDLExtDev`: a device registered with PyTorch by an extension.
pub const CLUSTER: i32 = 12;
const MAJOR: u32 = 1;

/// `DLDevice`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DlDevice {
    pub kind: i32,
    pub index: i32,
}

/// `DLDataType`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq)]
pub struct DlDataType {
    kind: u8,
    bits: u8,
    lanes: u16,
}

/// `DLTensor`.
#[repr(C)]
pub struct DlTensor {
    pub data: *mut c_void,
    pub device: DlDevice,
    pub rank: i32,
    pub code: DlDataType,
    pub sizes: *mut i64,
    pub strides: *mut i64,
    pub byte_offset: u64,
}

/// `DLPackVersion`.
#[repr(C)]
pub struct DlVersion {
    pub major: u32,
    pub minor: u32,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
pub struct DlManagedTensor {
    pub version: DlVersion,
    pub context: *mut c_void,
    pub deleter: Option<unsafe extern "C" fn(*mut DlManagedTensor)>,
    pub flags: u64,
    pub view: DlTensor,
}

/// `DLPackExchangeAPI`.
#[repr(C)]
struct DlExchangeApi {
    version: DlVersion,
    before: *const c_void,
    allocate: *const c_void,
    managed_from_object: *const c_void,
    object_from_managed: unsafe extern "C" fn(*mut DlManagedTensor, *mut *mut c_void) -> c_int,
    view_from_object: Option<unsafe extern "C" fn(*mut c_void, *mut DlTensor) -> c_int>,
    stream: *const c_void,
}

struct ExchangeApi(&'static DlExchangeApi);

// SAFETY: PyTorch never changes its table of functions.
unsafe impl Send for ExchangeApi {}
// SAFETY: as above.
unsafe impl Sync for ExchangeApi {}

static EXCHANGE_API: OnceLock<ExchangeApi> = OnceLock::new();

/// Looks up the functions in the class `torch.Tensor`.
pub fn connect(class: &Bound<'_, PyAny>) -> PyResult<()> {
    let capsule = class.getattr("__dlpack_c_exchange_api__")?;
    // SAFETY: `capsule` is an object; for another type or name the result is null, with an error
    // set.
    let pointer =
        unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), c"dlpack_exchange_api".as_ptr()) };
    if pointer.is_null() {
        return Err(PyErr::fetch(class.py()));
    }
    // SAFETY: a capsule of this name points to a table that lives as long as the process.
    let exchange = unsafe { &*pointer.cast::<DlExchangeApi>() };
    if exchange.version.major != MAJOR || exchange.view_from_object.is_none() {
        return Err(PyRuntimeError::new_err(format!(
            "gt.torch: this PyTorch passes tensors by DLPack {}.{}, expected {MAJOR}",
            exchange.version.major, exchange.version.minor
        )));
    }
    let _ = EXCHANGE_API.set(ExchangeApi(exchange));
    Ok(())
}

fn exchange_api() -> &'static DlExchangeApi {
    EXCHANGE_API.get().expect("`setup` is called before any kernel").0
}

/// Returns the descriptor of a PyTorch tensor. Its sizes and strides are borrowed from the tensor.
pub fn describe(tensor: &Bound<'_, PyAny>) -> PyResult<DlTensor> {
    let mut view = std::mem::MaybeUninit::<DlTensor>::uninit();
    let from_object = exchange_api().view_from_object.expect("checked by `connect`");
    // SAFETY: the argument is a PyTorch tensor, and the GIL is held; the function fills `view` or
    // fails.
    let failed = unsafe { from_object(tensor.as_ptr().cast(), view.as_mut_ptr()) };
    if failed != 0 {
        return Err(PyErr::fetch(tensor.py()));
    }
    // SAFETY: the function succeeded and has filled it.
    Ok(unsafe { view.assume_init() })
}

/// Creates a PyTorch tensor from a descriptor; PyTorch calls its deleter.
pub fn tensor_from(py: Python<'_>, managed: Box<DlManagedTensor>) -> PyResult<Bound<'_, PyAny>> {
    let mut object = std::ptr::null_mut();
    // SAFETY: `managed` is initialized, and its deleter frees it.
    let failed =
        unsafe { (exchange_api().object_from_managed)(Box::into_raw(managed), &raw mut object) };
    if failed != 0 {
        return Err(PyErr::fetch(py));
    }
    // SAFETY: the function succeeded, so `object` is a new reference.
    unsafe { Bound::from_owned_ptr_or_err(py, object.cast()) }
}

impl DlManagedTensor {
    /// Returns the version of the structures in this module.
    pub fn version() -> DlVersion {
        DlVersion { major: MAJOR, minor: 0 }
    }
}

impl DlTensor {
    pub fn sizes(&self) -> &[i64] {
        // SAFETY: by DLPack's rules there are `rank` numbers.
        unsafe { numbers(self.sizes, self.rank) }
    }

    pub fn strides(&self) -> &[i64] {
        // SAFETY: as above; PyTorch always sets the strides.
        unsafe { numbers(self.strides, self.rank) }
    }
}

impl DlTensor {
    /// Returns the value of a host tensor without axes, unless it is complex.
    pub fn host_number(&self) -> Option<Scalar> {
        let dtype = self.code.dtype().ok()?;
        if self.device.kind != CPU || self.rank != 0 || dtype.is_complex() || self.data.is_null() {
            return None;
        }
        // SAFETY: host memory that holds the tensor's only element.
        let bytes = unsafe {
            let first = self.data.cast::<u8>().add(self.byte_offset as usize);
            std::slice::from_raw_parts(first, dtype.size())
        };
        let data = TensorData::new(dtype, Shape::SCALAR, Bytes::copy_from_slice(bytes))?;
        Some(data.element(0))
    }
}

/// # Safety
/// `first` points to `count` numbers that live as long as the result is used.
unsafe fn numbers<'a>(first: *const i64, count: i32) -> &'a [i64] {
    if count == 0 || first.is_null() {
        return &[];
    }
    // SAFETY: by the caller's contract.
    unsafe { std::slice::from_raw_parts(first, count as usize) }
}

/// DLPack's type codes (int, uint, float, bfloat, complex, bool) and bits, with GT's dtypes.
const CODES: &[(u8, u8, DType)] = &[
    (2, 32, DType::F32),
    (0, 64, DType::I64),
    (6, 8, DType::Bool),
    (2, 64, DType::F64),
    (2, 16, DType::F16),
    (4, 16, DType::BF16),
    (0, 32, DType::I32),
    (0, 16, DType::I16),
    (0, 8, DType::I8),
    (1, 8, DType::U8),
    (5, 64, DType::C64),
    (5, 128, DType::C128),
];

impl DlDataType {
    pub fn of(dtype: DType) -> DlDataType {
        let found = CODES.iter().find(|(_, _, other)| *other == dtype);
        let (kind, bits, _) = found.expect("every dtype has a code");
        DlDataType { kind: *kind, bits: *bits, lanes: 1 }
    }

    /// Returns the dtype.
    ///
    /// # Errors
    /// GT does not have it.
    pub fn dtype(self) -> PyResult<DType> {
        let known = CODES.iter().find(|(kind, bits, _)| (*kind, *bits) == (self.kind, self.bits));
        known.map(|(_, _, dtype)| *dtype).ok_or_else(|| {
            PyTypeError::new_err(format!(
                "gt.torch: a dtype of {} bits (DLPack's kind {}) is not one of the cluster's\n  hint: cast it before it is moved there",
                self.bits, self.kind
            ))
        })
    }
}
