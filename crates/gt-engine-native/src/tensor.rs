//! Tensors: an offset, a shape and strides in shared memory.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use bytes::Bytes;
use gt_ir::shape::MAX_RANK;
use gt_ir::{DType, Meta, Scalar, Shape, TensorData};
use gt_worker::{EngineError, SharedBuffer};

use crate::buffer::Buffer;
use crate::copy;
use crate::element::{Element, with_element};
use crate::threads::Threads;
use crate::uninit::Uninit;

/// The distance in elements between neighbours along each axis; negative along flipped axes, 0
/// along expanded ones.
pub type Strides = [isize; MAX_RANK];

/// Smaller uploads are copied, as they could keep a much larger message alive.
const COPY_BELOW: usize = 64 << 10;

/// A tensor of the native engine. Cloning shares the memory; views are tensors of their own.
///
/// Invariants: all of the buffer is initialized; it holds elements of one dtype, aligned for it,
/// and the tensor's elements are among them. They change only through [`Uninit::over`],
/// [`Tensor::region`] and [`Tensor::bytes_mut`], which require that nothing else refers to the
/// buffer.
#[derive(Clone)]
pub struct Tensor {
    buffer: Arc<Buffer>,
    dtype: DType,
    /// The position of the first element in the buffer, in elements.
    offset: isize,
    shape: Shape,
    /// `None` for a contiguous tensor: most are, so they are small and quick to recognize.
    strides: Option<Arc<Strides>>,
}

/// Returns the strides of a contiguous tensor.
pub fn contiguous_strides(shape: &Shape) -> Strides {
    shape.strides().map(|stride| stride as isize)
}

/// Returns the strides that iterate over a tensor of shape `from` when it is broadcast to `to`.
///
/// # Panics
/// It does not broadcast.
pub(crate) fn broadcast_strides(from: &Shape, own: &Strides, to: &Shape) -> Strides {
    if from == to {
        return *own;
    }
    assert!(from.expands_to(to), "a tensor of {from} does not broadcast to {to}");
    let mut strides = [0; MAX_RANK];
    let extra = to.rank() - from.rank();
    for (axis, &length) in from.dims().iter().enumerate() {
        strides[extra + axis] = if length == 1 { 0 } else { own[axis] };
    }
    strides
}

/// Returns whether elements at these strides are adjacent in row-major order.
fn are_contiguous(shape: &Shape, strides: &Strides) -> bool {
    let mut expected = 1;
    for axis in (0..shape.rank()).rev() {
        let length = shape.dims()[axis];
        if length == 0 {
            return true;
        }
        if length != 1 && strides[axis] != expected {
            return false;
        }
        expected *= length as isize;
    }
    true
}

/// Returns the number of elements of a shape; `None` if it cannot be addressed, even if axes of
/// length 0 had length 1.
fn count(shape: &Shape) -> Option<usize> {
    let (mut most, mut is_empty) = (1usize, false);
    for &length in shape.dims() {
        is_empty |= length == 0;
        most = most.checked_mul(length.max(1))?;
    }
    (most <= isize::MAX as usize).then_some(if is_empty { 0 } else { most })
}

/// Returns the number of bytes of a contiguous tensor; `None` if they cannot be addressed.
#[inline]
pub(crate) fn bytes_of(meta: Meta) -> Option<usize> {
    count(&meta.shape)?.checked_mul(meta.dtype.size())
}

/// Returns whether elements at these strides, the first at `offset`, are within `count` elements.
pub(crate) fn are_within(count: usize, offset: isize, shape: &Shape, strides: &Strides) -> bool {
    let (mut first, mut last, mut fits) = (offset, offset, true);
    for (&length, &stride) in shape.dims().iter().zip(strides) {
        if length == 0 {
            return true;
        }
        let (span, too_long) = (length as isize - 1).overflowing_mul(stride);
        let end = if span < 0 { &mut first } else { &mut last };
        let (shifted, too_far) = end.overflowing_add(span);
        *end = shifted;
        fits &= length <= isize::MAX as usize && !too_long && !too_far;
    }
    fits && first >= 0 && last < count.min(isize::MAX as usize) as isize
}

impl Tensor {
    /// Creates a contiguous tensor of all elements of a buffer.
    ///
    /// # Safety
    /// The buffer is as long as the elements and aligned for them, and all of it is initialized.
    #[inline]
    pub(crate) unsafe fn over_memory(buffer: Arc<Buffer>, meta: Meta) -> Tensor {
        Tensor { buffer, dtype: meta.dtype, offset: 0, shape: meta.shape, strides: None }
    }

    /// Creates a tensor with these values; large ones share the memory.
    ///
    /// # Errors
    /// The bytes do not match the shape, or memory is exhausted.
    pub(crate) fn from_data(data: TensorData) -> Result<Tensor, EngineError> {
        let TensorData { dtype, shape, bytes } = data;
        let meta = Meta::new(dtype, shape);
        if bytes_of(meta) != Some(bytes.len()) {
            let text = format!("{} bytes given for {dtype} {shape}", bytes.len());
            return Err(EngineError::Other(text));
        }
        // Kernels rely on bools being 0 or 1.
        let odd_bools = dtype == DType::Bool && bytes.iter().fold(0, |all, byte| all | byte) > 1;
        let aligned = (bytes.as_ptr() as usize).is_multiple_of(dtype.size());
        if bytes.len() >= COPY_BELOW && aligned && !odd_bools {
            // SAFETY: the elements are all of the bytes, whose number and alignment match.
            return Ok(unsafe { Tensor::over_memory(Buffer::foreign(bytes), meta) });
        }
        let mut out = Uninit::new(meta)?;
        // SAFETY: the memory is new and has space for `bytes.len()` bytes, as checked above; they
        // initialize every element.
        let mut tensor = unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), out.write(), bytes.len());
            out.finish()
        };
        if odd_bools {
            tensor.bytes_mut().iter_mut().for_each(|value| *value = u8::from(*value != 0));
        }
        Ok(tensor)
    }

    /// Returns the values of a contiguous tensor; they share its memory unless that would keep much
    /// more memory alive.
    pub(crate) fn to_data(&self) -> TensorData {
        let (dtype, shape) = (self.dtype, self.shape);
        let length = self.bytes().len();
        let start = self.offset as usize * dtype.size();
        let bytes = if length < 256 || self.buffer.capacity() / 4 > length {
            Bytes::copy_from_slice(self.bytes())
        } else if let Some(owner) = self.buffer.owner() {
            owner.slice(start..start + length)
        } else {
            Bytes::from_owner(LentTensor(self.clone()))
        };
        TensorData { dtype, shape, bytes }
    }

    /// Returns the dtype of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(crate) fn strides(&self) -> Strides {
        self.strides.as_deref().copied().unwrap_or_else(|| contiguous_strides(&self.shape))
    }

    /// Returns the number of elements.
    pub fn numel(&self) -> usize {
        self.shape.numel()
    }

    /// Returns dtype and shape.
    pub fn meta(&self) -> Meta {
        Meta::new(self.dtype, self.shape)
    }

    /// Returns whether the elements are adjacent in row-major order.
    #[inline]
    pub(crate) fn is_contiguous(&self) -> bool {
        self.strides.is_none()
    }

    /// Returns the address of the first element; the others are at the strides from there.
    pub(crate) fn read(&self) -> *const u8 {
        // An empty tensor may have an offset beyond its memory; it is never dereferenced.
        self.buffer.data().wrapping_offset(self.offset.wrapping_mul(self.dtype.size() as isize))
    }

    /// Returns whether nothing else refers to the memory, so that it can be overwritten.
    pub(crate) fn is_writable(&mut self) -> bool {
        // Buffers have no weak references, so one strong reference is the only one, and no other is
        // created while this is borrowed. `Arc::get_mut` locks, which takes longer than the rest.
        let is_only = Arc::strong_count(&self.buffer) == 1;
        // Synchronizes with other threads' last accesses before they dropped their references.
        fence(Ordering::Acquire);
        is_only && self.buffer.owner().is_none()
    }

    /// Returns the buffer if others refer to it or it is longer than the elements.
    #[inline]
    pub(crate) fn shared_buffer(&self) -> Option<SharedBuffer> {
        let bytes = self.buffer.length();
        let is_own = Arc::strong_count(&self.buffer) == 1 && bytes == self.meta().bytes();
        let id = Arc::as_ptr(&self.buffer) as usize as u64;
        (!is_own).then_some(SharedBuffer { id, bytes: bytes as u64 })
    }

    /// Returns the elements of a contiguous tensor as bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        assert!(self.is_contiguous());
        if self.numel() == 0 {
            return &[];
        }
        // SAFETY: the elements are exactly this many bytes of the buffer, all initialized. They do
        // not change while `self` is borrowed, as that requires the only reference.
        unsafe { std::slice::from_raw_parts(self.read(), self.meta().bytes()) }
    }

    /// Returns the elements of a contiguous tensor, to which nothing else refers, as bytes.
    ///
    /// # Panics
    /// Something else refers to the memory.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        assert!(self.is_contiguous() && self.is_writable());
        if self.numel() == 0 {
            return &mut [];
        }
        // SAFETY: as in `bytes`; this is the only reference, and the memory was allocated here.
        unsafe { std::slice::from_raw_parts_mut(self.read().cast_mut(), self.meta().bytes()) }
    }

    /// Returns the elements of a contiguous tensor.
    pub(crate) fn as_slice<T: Element>(&self) -> &[T] {
        assert!(T::DTYPE == self.dtype);
        match self.bytes() {
            [] => &[],
            bytes => bytemuck::cast_slice(bytes),
        }
    }

    /// Returns the memory from the first to the last element of a tensor without negative strides.
    ///
    /// # Panics
    /// A stride is negative.
    pub(crate) fn span<T: Element>(&self) -> &[T] {
        let () = T::FITS;
        let strides = self.strides();
        let axes = self.shape.dims().iter().zip(&strides);
        assert!(T::DTYPE == self.dtype && axes.clone().all(|(_, stride)| *stride >= 0));
        if self.numel() == 0 {
            return &[];
        }
        let last: usize = axes.map(|(length, stride)| (length - 1) * *stride as usize).sum();
        // SAFETY: the first and the last element are within the buffer, all of which is initialized
        // and holds elements of this dtype. They do not change while `self` is borrowed, as that
        // requires the only reference.
        unsafe { std::slice::from_raw_parts(self.read().cast(), last + 1) }
    }

    /// Returns the elements of a contiguous tensor to which nothing else refers.
    ///
    /// # Panics
    /// Something else refers to the memory.
    pub(crate) fn as_mut_slice<T: Element>(&mut self) -> &mut [T] {
        assert!(T::DTYPE == self.dtype);
        match self.bytes_mut() {
            [] => &mut [],
            bytes => bytemuck::cast_slice_mut(bytes),
        }
    }

    /// Returns a view of the memory; `offset` is relative to the first element.
    ///
    /// # Panics
    /// An element would be outside of the buffer.
    pub(crate) fn view(&self, offset: isize, shape: Shape, strides: Strides) -> Tensor {
        self.clone().into_view(offset, shape, strides)
    }

    /// As [`Tensor::view`], without another reference to the memory.
    pub(crate) fn into_view(mut self, offset: isize, shape: Shape, strides: Strides) -> Tensor {
        let count = self.buffer.length() / self.dtype.size();
        self.offset = self.offset.wrapping_add(offset);
        assert!(are_within(count, self.offset, &shape, &strides), "a view beyond its memory");
        self.shape = shape;
        self.strides = (!are_contiguous(&shape, &strides)).then(|| Arc::new(strides));
        self
    }

    /// Returns a contiguous tensor with another shape of as many elements.
    pub(crate) fn with_shape(mut self, shape: Shape) -> Tensor {
        assert!(self.is_contiguous() && count(&shape) == Some(self.numel()));
        self.shape = shape;
        self
    }

    /// Reinterprets contiguous memory as another dtype and shape of as many bytes.
    ///
    /// # Errors
    /// Memory is exhausted: a copy is needed if the memory is not aligned for the new elements.
    pub(crate) fn reinterpret(self, output: Meta) -> Result<Tensor, EngineError> {
        assert!(self.is_contiguous() && output.bytes() == self.meta().bytes());
        let start = self.offset * self.dtype.size() as isize;
        let size = output.dtype.size() as isize;
        let whole = if start % size == 0 { self } else { copy::of(&self)? };
        let offset = whole.offset * whole.dtype.size() as isize / size;
        Ok(Tensor { offset, dtype: output.dtype, shape: output.shape, ..whole })
    }

    /// Returns a view that is broadcast to `shape`.
    pub(crate) fn expand(&self, shape: &Shape) -> Tensor {
        self.view(0, *shape, self.strides_in(shape))
    }

    /// Returns the strides that iterate over this tensor when it is broadcast to `shape`. They stay
    /// within the tensor.
    ///
    /// # Panics
    /// It does not broadcast to `shape`.
    pub(crate) fn strides_in(&self, shape: &Shape) -> Strides {
        broadcast_strides(&self.shape, &self.strides(), shape)
    }

    /// Returns a view with the axes in another order.
    pub(crate) fn permute(&self, order: &[usize]) -> Tensor {
        let (mut shape, mut strides, own) = (self.shape, [0; MAX_RANK], self.strides());
        for (to, &from) in order.iter().enumerate() {
            shape = shape.with(to, self.shape.dims()[from]);
            strides[to] = own[from];
        }
        self.view(0, shape, strides)
    }

    /// Returns the same values in row-major order; the tensor itself if they are.
    pub(crate) fn contiguous(self) -> Result<Tensor, EngineError> {
        if self.is_contiguous() {
            return Ok(self);
        }
        copy::of(&self)
    }

    /// As [`Tensor::contiguous`], in parallel if the tensor is large.
    pub(crate) fn contiguous_with(self, threads: &mut Threads) -> Result<Tensor, EngineError> {
        if self.is_contiguous() {
            return Ok(self);
        }
        copy::of_with(threads, &self)
    }

    /// Returns the same values, contiguous and in memory that may be written.
    pub(crate) fn writable(mut self) -> Result<Tensor, EngineError> {
        if self.is_contiguous() && self.is_writable() {
            return Ok(self);
        }
        copy::of(&self)
    }

    /// As [`Tensor::writable`], in parallel if the tensor is large.
    pub(crate) fn writable_with(mut self, threads: &mut Threads) -> Result<Tensor, EngineError> {
        if self.is_contiguous() && self.is_writable() {
            return Ok(self);
        }
        copy::of_with(threads, &self)
    }

    /// Creates a tensor without axes that holds a number.
    pub(crate) fn scalar(value: Scalar, dtype: DType) -> Result<Tensor, EngineError> {
        let mut out = Uninit::new(Meta::new(dtype, Shape::SCALAR))?;
        with_element!(dtype, T => {
            out.slots::<T>()[0].write(T::from_scalar(value));
        });
        // SAFETY: its one element has been written.
        Ok(unsafe { out.finish() })
    }
}

/// A contiguous tensor whose memory a [`Bytes`] refers to.
struct LentTensor(Tensor);

impl AsRef<[u8]> for LentTensor {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}
