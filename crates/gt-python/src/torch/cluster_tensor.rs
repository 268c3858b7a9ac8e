//! Reading, writing and creating PyTorch tensors on the device `cluster`.

use std::ffi::c_void;
use std::sync::LazyLock;

use gt::ir::ops::complex;
use gt::ir::{Operand, Operation};
use gt::tensor::strides::Strided;
use gt::{DType, Scalar, Shape, Tensor, TensorData};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use smallvec::SmallVec;

use super::dlpack::{self, CLUSTER, DlDataType, DlDevice, DlManagedTensor, DlTensor};
use super::kernel_cache::{KernelCache, KernelKey};
use super::results::KernelResults;
use super::storage::{self, Storage, StorageContent};
use super::thread_context;
use crate::error::{IntoPython, to_python};
use crate::tensor::PyTensor;
use crate::{convert, dtype, session};

/// A PyTorch tensor on the device `cluster`: a strided view of a storage.
pub struct StorageView {
    number: usize,
    pub dtype: DType,
    pub strided: Strided,
}

/// Returns the storage view that a DLPack descriptor describes.
///
/// # Errors
/// A dtype or rank that GT does not have.
pub fn storage_view(descriptor: &DlTensor) -> PyResult<StorageView> {
    let dtype = descriptor.code.dtype()?;
    let lengths: SmallVec<[usize; 8]> =
        descriptor.sizes().iter().map(|&size| size as usize).collect();
    let shape = Shape::new(&lengths).map_err(|error| to_python(error.into()))?;
    let (number, bytes) =
        storage::locate(descriptor.data as usize + descriptor.byte_offset as usize);
    let mut strided =
        Strided { offset: (bytes / dtype.size()) as i64, ..Strided::contiguous(shape) };
    strided.strides[..descriptor.strides().len()].copy_from_slice(descriptor.strides());
    if bytes % dtype.size() != 0 {
        return Err(reinterpretation_error(dtype));
    }
    Ok(StorageView { number, dtype, strided })
}

impl StorageView {
    fn storage(&self) -> PyResult<Storage> {
        storage::get(self.number).ok_or_else(|| {
            PyRuntimeError::new_err(
                "gt.torch: a tensor's storage is gone\n  hint: its address came from another process, or from data_ptr()",
            )
        })
    }

    /// Returns all elements of the storage in the storage's dtype. A storage without a defined
    /// value is given the dtype of this view.
    fn root(&self, py: Python<'_>) -> PyResult<Tensor> {
        let storage = self.storage()?;
        let bytes = storage.bytes();
        let root = match storage.content {
            StorageContent::Elements(elements) => return Ok(elements.tensor()),
            StorageContent::Blank => {
                let session = session::ready_current(py)?;
                let shape =
                    if storage.dtype == self.dtype { storage.shape } else { self.row(bytes)? };
                Tensor::full(&session, shape, Scalar::Int(0), self.dtype).py()?
            }
            StorageContent::Bytes(held) => {
                let held = TensorData::new(self.dtype, self.row(bytes)?, held);
                let held = held.ok_or_else(|| reinterpretation_error(self.dtype))?;
                Tensor::from_data(&session::ready_current(py)?, held)
            }
        };
        storage::set(self.number, root.value_ref());
        Ok(root)
    }

    /// Returns the one-dimensional shape of `bytes` in this view's dtype.
    fn row(&self, bytes: usize) -> PyResult<Shape> {
        if !bytes.is_multiple_of(self.dtype.size()) {
            return Err(reinterpretation_error(self.dtype));
        }
        Shape::new(&[bytes / self.dtype.size()]).map_err(|error| to_python(error.into()))
    }

    /// Returns the elements of the view.
    pub fn read(&self, py: Python<'_>) -> PyResult<Tensor> {
        if self.strided.shape.numel() == 0 {
            let session = match self.storage().map(|storage| storage.content) {
                Ok(StorageContent::Elements(elements)) => elements.session().clone(),
                _ => session::ready_current(py)?,
            };
            return Tensor::full(&session, self.strided.shape, Scalar::Int(0), self.dtype).py();
        }
        let root = self.root(py)?;
        if root.dtype() == self.dtype && self.strided == Strided::contiguous(root.shape()) {
            return Ok(root);
        }
        self.cached_view(root)
    }

    /// Like [`StorageView::view`], but for reading, with the instructions cached by layout.
    fn cached_view(&self, root: Tensor) -> PyResult<Tensor> {
        static VIEWS: LazyLock<KernelCache> = LazyLock::new(|| KernelCache::new("views"));
        let mut key = KernelKey::new();
        key.tensor(&root);
        key.strided(self.dtype, &self.strided);
        let root = [root];
        VIEWS
            .replay_or_record(key, &root, &[], || self.view(&root[0]).map(KernelResults::One))?
            .one()
    }

    /// Returns this view as a view of the storage's elements `root`.
    fn view(&self, root: &Tensor) -> PyResult<Tensor> {
        let seen = match (root.dtype(), self.dtype) {
            (own, seen) if own == seen => None,
            (own, seen) if own.to_real() == seen => Some(&complex::VIEW_AS_REAL),
            (own, seen) if own == seen.to_real() => Some(&complex::VIEW_AS_COMPLEX),
            _ => return Err(reinterpretation_error(self.dtype)),
        };
        let Some(operation) = seen else { return root.restride(&self.strided).py() };
        let pairs = if operation.id == complex::VIEW_AS_COMPLEX.id {
            &root.reshape(&[-1, 2]).py()?
        } else {
            root
        };
        apply(operation, pairs)?.restride(&self.strided).py()
    }

    /// Writes the elements of the view.
    ///
    /// # Errors
    /// Elements overlap in memory; another shape or session; a dtype that cannot be cast.
    pub fn write(&self, py: Python<'_>, value: &Tensor, operation: &str) -> PyResult<()> {
        if !value.dtype().can_cast(self.dtype) {
            return Err(PyRuntimeError::new_err(format!(
                "{operation}: result type {} can't be cast to the desired output type {}",
                value.dtype(),
                self.dtype
            )));
        }
        if self.strided.shape.numel() == 0 {
            return Ok(());
        }
        let storage = self.storage()?;
        storage.check_changeable(operation)?;
        let is_defined = matches!(storage.content, StorageContent::Elements(_));
        let is_whole = (storage.dtype == self.dtype || !is_defined)
            && value.shape() == self.strided.shape
            && storage.bytes() == value.shape().numel() * self.dtype.size();
        if is_whole && let Some(order) = self.order_in_memory() {
            // The value replaces the whole storage.
            let value = value.cast(self.dtype).py()?;
            let value = if order.is_sorted() { value } else { value.permute(&order).py()? };
            storage::set(self.number, value.value_ref());
            return Ok(());
        }
        let root = self.root(py)?;
        self.view(&root)?.assign(value, operation).py()?;
        storage::set(self.number, root.value_ref());
        Ok(())
    }

    /// Returns the axes in the order of their strides, outermost first; `None` if the elements have
    /// gaps or do not begin at the storage's start.
    pub fn order_in_memory(&self) -> Option<SmallVec<[i64; 8]>> {
        let Strided { shape, strides, offset } = &self.strided;
        let mut order: SmallVec<[i64; 8]> = (0..shape.rank() as i64).collect();
        order.sort_by_key(|&axis| (-strides[axis as usize], shape[axis as usize] == 1));
        let mut expected = 1;
        for &axis in order.iter().rev().filter(|&&axis| shape[axis as usize] != 1) {
            if strides[axis as usize] != expected {
                return None;
            }
            expected *= shape[axis as usize] as i64;
        }
        (*offset == 0).then_some(order)
    }
}

fn apply(operation: &'static Operation, tensor: &Tensor) -> PyResult<Tensor> {
    let operands = [Operand::Tensor(tensor)];
    Tensor::apply(&tensor.session(), operation, &operands, Default::default()).py()
}

/// Returns the conjugate of a tensor.
pub fn conjugate(tensor: &Tensor) -> PyResult<Tensor> {
    apply(&complex::CONJ, tensor)
}

fn reinterpretation_error(dtype: DType) -> PyErr {
    PyTypeError::new_err(format!(
        "gt.torch: the bits of a tensor on the cluster cannot be seen as {dtype}\n  hint: x.to(dtype) converts the numbers; x.cpu().view(dtype) gives their bits"
    ))
}

/// Creates a PyTorch tensor with a storage of its own. `order` lists its axes from the outermost to
/// the innermost in memory; without it, the layout is row-major.
pub fn create<'py>(
    py: Python<'py>,
    value: &Tensor,
    order: Option<&[i64]>,
) -> PyResult<Bound<'py, PyAny>> {
    let shape = value.shape();
    let root = match order {
        Some(order) => value.permute(order).py()?,
        None => value.clone(),
    };
    let storage = Storage::of(root.value_ref());
    let own = Strided::contiguous(root.shape());
    let mut strided = Strided { strides: own.strides, ..Strided::contiguous(shape) };
    for (to, &axis) in order.iter().flat_map(|order| order.iter().enumerate()) {
        strided.strides[axis as usize] = own.strides[to];
    }
    over_storage(py, storage, &strided)
}

/// Creates a PyTorch tensor over a storage.
fn over_storage<'py>(
    py: Python<'py>,
    storage: Storage,
    strided: &Strided,
) -> PyResult<Bound<'py, PyAny>> {
    struct Context {
        address: usize,
        sizes: [i64; gt::ir::shape::MAX_RANK],
        strides: [i64; gt::ir::shape::MAX_RANK],
    }

    unsafe extern "C" fn delete(managed: *mut DlManagedTensor) {
        // SAFETY: DLPack calls this once, with the pointer passed below; both are boxes made below.
        let (managed, context) = unsafe {
            let managed = Box::from_raw(managed);
            let context = Box::from_raw(managed.context.cast::<Context>());
            (managed, context)
        };
        storage::remove(context.address);
        drop(managed);
    }

    let code = DlDataType::of(storage.dtype);
    let address = storage::add(storage).ok_or_else(|| {
        PyRuntimeError::new_err(
            "gt.torch: a storage must be smaller than 1 TiB, and there are 8388608 at most",
        )
    })?;
    let mut sizes = [0; gt::ir::shape::MAX_RANK];
    for (to, &length) in sizes.iter_mut().zip(strided.shape.dims()) {
        *to = length as i64;
    }
    let context = Box::into_raw(Box::new(Context { address, sizes, strides: strided.strides }));
    // SAFETY: the box was made above; `delete` frees it after the last use of the descriptor.
    let (sizes, strides) =
        unsafe { ((&raw mut (*context).sizes).cast(), (&raw mut (*context).strides).cast()) };
    let view = DlTensor {
        data: address as *mut c_void,
        device: DlDevice { kind: CLUSTER, index: 0 },
        rank: strided.shape.rank() as i32,
        code,
        sizes,
        strides,
        byte_offset: 0,
    };
    let context = context.cast();
    let version = DlManagedTensor::version();
    dlpack::tensor_from(
        py,
        Box::new(DlManagedTensor { version, context, deleter: Some(delete), flags: 0, view }),
    )
}

/// Look up PyTorch's functions for passing tensors in the class `torch.Tensor`.
#[pyfunction]
pub fn setup(class: &Bound<'_, PyAny>) -> PyResult<()> {
    dlpack::connect(class)
}

/// Return the elements of a PyTorch tensor on the device `cluster` as a GT tensor.
#[pyfunction]
pub fn read(tensor: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    thread_context::note(tensor.py());
    storage_view(&dlpack::describe(tensor)?)?.read(tensor.py()).map(PyTensor)
}

/// Write a GT tensor into a PyTorch tensor on the device `cluster`; errors name `operation`.
#[pyfunction]
pub fn write(tensor: &Bound<'_, PyAny>, value: &PyTensor, operation: &str) -> PyResult<()> {
    thread_context::note(tensor.py());
    session::ready(tensor.py(), &value.0)?;
    storage_view(&dlpack::describe(tensor)?)?.write(tensor.py(), &value.0, operation)
}

/// Return a new PyTorch tensor on the device `cluster` with the values of a GT tensor.
#[pyfunction]
pub fn wrap<'py>(py: Python<'py>, value: &PyTensor) -> PyResult<Bound<'py, PyAny>> {
    thread_context::note(py);
    create(py, &value.0, None)
}

/// Return a new PyTorch tensor on the device `cluster` with undefined values.
///
/// Raises:
///     RuntimeError: the strides do not fit the size.
#[pyfunction]
pub fn blank<'py>(
    py: Python<'py>,
    size: &Bound<'py, PyAny>,
    stride: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let shape = convert::shape(&convert::ints(size, "the shape")?)?;
    let strides = convert::ints(stride, "the strides")?;
    if strides.len() != shape.rank() || strides.iter().any(|&stride| stride < 0) {
        return Err(PyRuntimeError::new_err(format!(
            "strides {:?} do not fit the shape {shape}: one of 0 or more is expected for each axis",
            strides.as_slice()
        )));
    }
    let mut strided = Strided::contiguous(shape);
    strided.strides[..strides.len()].copy_from_slice(&strides);
    let place = StorageView { number: 0, dtype: dtype::parse(dtype)?, strided };
    let in_memory = match place.order_in_memory() {
        Some(order) => {
            let lengths: SmallVec<[usize; 8]> =
                order.iter().map(|&axis| shape[axis as usize]).collect();
            Shape::new(&lengths)
        }
        None => {
            let steps = (0..shape.rank()).map(|axis| (shape[axis] as i64 - 1) * strides[axis]);
            Shape::new(&[if shape.numel() == 0 { 0 } else { steps.sum::<i64>() as usize + 1 }])
        }
    };
    let shape = in_memory.map_err(|error| to_python(error.into()))?;
    over_storage(py, Storage::blank(place.dtype, shape), &place.strided)
}
