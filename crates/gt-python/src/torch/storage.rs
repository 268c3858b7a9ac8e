//! Storages on the device `cluster`, by address.
//!
//! An address consists of the bit `1 << 63`, the number of the storage, and the offset in it in
//! bytes. No machine has memory at such an address, so code that dereferences it faults at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use bytes::Bytes;
use gt::ir::Meta;
use gt::{DType, Shape, ValueRef};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{IntoPython, to_python};
use crate::session::ForkBlocker;
use crate::tensor::PyTensor;

/// The bits of an address for the offset in a storage: up to 1 TiB.
const OFFSET_BITS: u32 = 40;
const MARK: usize = 1 << 63;
/// The maximum number of storages, given by the remaining bits.
const MOST: usize = 1 << (63 - OFFSET_BITS);

/// The content of a storage, with the dtype and shape of its elements in memory order.
#[derive(Clone)]
pub struct Storage {
    pub dtype: DType,
    pub shape: Shape,
    pub content: StorageContent,
    /// Whether it is that of a publication: changes are errors.
    pub is_published: bool,
}

/// The elements of a storage.
#[derive(Clone)]
pub enum StorageContent {
    /// Undefined: nothing was written to it.
    Blank,
    /// Bytes copied from the host; the first access decides their dtype.
    Bytes(Bytes),
    Elements(ValueRef),
}

#[derive(Default)]
struct Storages {
    all: Vec<Option<Storage>>,
    free: Vec<usize>,
    bytes: usize,
    /// The largest value of `bytes` since the last [`forget_peak`].
    peak: usize,
}

/// Whether any storage was that of a publication.
static HAS_PUBLISHED: AtomicBool = AtomicBool::new(false);

static STORAGES: Mutex<Storages> =
    Mutex::new(Storages { all: Vec::new(), free: Vec::new(), bytes: 0, peak: 0 });

fn storages() -> MutexGuard<'static, Storages> {
    STORAGES.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Storage {
    /// Returns a storage of these elements.
    pub fn of(elements: ValueRef) -> Storage {
        let &Meta { dtype, shape } = elements.meta();
        Storage { content: StorageContent::Elements(elements), ..Storage::blank(dtype, shape) }
    }

    /// Returns a storage of undefined elements.
    pub fn blank(dtype: DType, shape: Shape) -> Storage {
        Storage { dtype, shape, content: StorageContent::Blank, is_published: false }
    }

    /// Checks that an operation may change it.
    ///
    /// # Errors
    /// It is that of a publication.
    pub fn check_changeable(&self, operation: &str) -> PyResult<()> {
        match self.is_published {
            false => Ok(()),
            true => Err(PyRuntimeError::new_err(format!(
                "{operation}: the tensor is shared by gt.torch.shared, and cannot be changed in place\n  hint: change a copy: tensor.clone()"
            ))),
        }
    }

    /// Returns its size in bytes.
    pub fn bytes(&self) -> usize {
        self.shape.numel() * self.dtype.size()
    }
}

/// Splits an address into the number of a storage and the offset in it in bytes.
pub fn locate(address: usize) -> (usize, usize) {
    let plain = address & !MARK;
    (plain >> OFFSET_BITS, plain & ((1 << OFFSET_BITS) - 1))
}

/// Returns the number of the storage at an address; `None` for other addresses.
pub fn number(address: usize) -> Option<usize> {
    (address & MARK != 0).then(|| locate(address).0)
}

/// Returns the value that a storage at an address refers to, if it has one.
pub fn value_at(address: usize) -> Option<ValueRef> {
    match get(number(address)?)?.content {
        StorageContent::Elements(elements) => Some(elements),
        StorageContent::Blank | StorageContent::Bytes(_) => None,
    }
}

/// Registers a storage. Returns its address; `None` if there are too many, or if its size exceeds
/// the range of offsets.
pub fn add(storage: Storage) -> Option<usize> {
    if storage.bytes() >= 1 << OFFSET_BITS {
        return None;
    }
    let mut storages = storages();
    let number = match storages.free.pop() {
        Some(number) => number,
        None if storages.all.len() == MOST => return None,
        None => {
            storages.all.push(None);
            storages.all.len() - 1
        }
    };
    storages.bytes += storage.bytes();
    storages.peak = storages.peak.max(storages.bytes);
    storages.all[number] = Some(storage);
    Some(MARK | number << OFFSET_BITS)
}

/// Calls a function with the storage of a number.
pub fn inspect<T>(number: usize, at: impl FnOnce(&Storage) -> T) -> Option<T> {
    storages().all.get(number)?.as_ref().map(at)
}

/// Returns whether a storage is that of a publication.
pub fn is_published(number: usize) -> bool {
    HAS_PUBLISHED.load(Ordering::Relaxed)
        && inspect(number, |storage| storage.is_published).unwrap_or(false)
}

/// Checks that an operation may change a storage.
///
/// # Errors
/// It is that of a publication.
fn check_changeable(number: usize, operation: &str) -> PyResult<()> {
    inspect(number, |storage| storage.check_changeable(operation)).unwrap_or(Ok(()))
}

/// Returns the storage of a number.
pub fn get(number: usize) -> Option<Storage> {
    storages().all.get(number).cloned().flatten()
}

/// Replaces the elements of a storage.
pub fn set(number: usize, elements: ValueRef) {
    replace(number, Storage::of(elements));
}

fn replace(number: usize, new: Storage) {
    let mut new = Some(new);
    let mut storages = storages();
    if let Some(place) = storages.all.get_mut(number).filter(|place| place.is_some()) {
        std::mem::swap(place, &mut new);
    }
    drop(storages);
    // Dropping a tensor writes to its session's stream.
    drop(new);
}

/// Removes a storage after PyTorch has deleted its last tensor.
pub fn remove(address: usize) {
    let _blocker = ForkBlocker::new();
    let (number, _) = locate(address);
    let mut storages = storages();
    let old = storages.all[number].take();
    storages.free.push(number);
    storages.bytes -= old.as_ref().map_or(0, Storage::bytes);
    drop(storages);
    drop(old);
}

/// Set the content of a storage to bytes from the host.
#[pyfunction]
pub fn fill_storage(address: usize, bytes: &[u8]) -> PyResult<()> {
    let (number, _) = locate(address);
    check_changeable(number, "copy_")?;
    let shape = Shape::new(&[bytes.len()]).map_err(|error| to_python(error.into()))?;
    let content = StorageContent::Bytes(Bytes::copy_from_slice(bytes));
    replace(number, Storage { content, ..Storage::blank(DType::U8, shape) });
    Ok(())
}

/// Mark the storage at an address as that of a publication: changes are errors.
#[pyfunction]
pub fn protect_storage(address: usize) {
    // An empty tensor may have no storage.
    let Some(number) = number(address) else { return };
    HAS_PUBLISHED.store(true, Ordering::Relaxed);
    if let Some(Some(storage)) = storages().all.get_mut(number) {
        storage.is_published = true;
    }
}

/// Set the content of the storage at `to` to that of the storage at `from`.
#[pyfunction]
pub fn copy_storage(to: usize, from: usize) -> PyResult<()> {
    check_changeable(locate(to).0, "copy_")?;
    if let Some(held) = get(locate(from).0) {
        replace(locate(to).0, Storage { is_published: false, ..held });
    }
    Ok(())
}

/// Return the content of a storage: a one-dimensional tensor, bytes, or None if it is undefined.
#[pyfunction]
pub fn storage_content(py: Python<'_>, address: usize) -> PyResult<Option<Py<PyAny>>> {
    let Some(storage) = get(locate(address).0) else { return Ok(None) };
    Ok(match storage.content {
        StorageContent::Blank => None,
        StorageContent::Bytes(bytes) => Some(PyBytes::new(py, &bytes).into_any().unbind()),
        StorageContent::Elements(elements) => {
            let row = PyTensor(elements.tensor().reshape(&[-1]).py()?);
            Some(Py::new(py, row)?.into_any())
        }
    })
}

/// Return the number of bytes in all storages of this process.
#[pyfunction]
pub fn allocated() -> usize {
    storages().bytes
}

/// Return the largest number of bytes in all storages since the last `forget_peak()`.
#[pyfunction]
pub fn peak() -> usize {
    storages().peak
}

/// Reset `peak()` to the current number of bytes.
#[pyfunction]
pub fn forget_peak() {
    let mut storages = storages();
    storages.peak = storages.bytes;
}
