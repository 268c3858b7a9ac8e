//! A tensor: a place in shared memory, and how to walk it.

use std::sync::Arc;

use bytes::Bytes;
use gt_ir::shape::MAX_RANK;
use gt_ir::{DType, Meta, Scalar, Shape, TensorData};
use gt_worker::EngineError;

use crate::buffer::Buffer;
use crate::copy;
use crate::element::{Element, with_element};
use crate::threads::Threads;

/// Elements to step for one further along each axis; negative where an axis is flipped, 0 where
/// it is expanded.
pub type Strides = [isize; MAX_RANK];

/// Uploads below this are copied: they may be small parts of a large message.
const COPY_BELOW: usize = 64 << 10;

/// A tensor of the native engine. Cloning shares the memory; views are tensors of their own.
#[derive(Clone)]
pub struct Tensor {
    buffer: Arc<Buffer>,
    dtype: DType,
    /// Of the first element, in elements.
    offset: isize,
    shape: Shape,
    /// None for a contiguous tensor: most are, and so they are small and quick to tell.
    strides: Option<Arc<Strides>>,
}

/// The strides of a contiguous tensor.
pub fn contiguous_strides(shape: &Shape) -> Strides {
    shape.strides().map(|stride| stride as isize)
}

/// Whether elements at these strides lie one after another in row-major order.
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

impl Tensor {
    /// A contiguous tensor whose values are not set yet: the caller writes every one.
    pub(crate) fn empty(meta: Meta) -> Result<Tensor, EngineError> {
        let Meta { dtype, shape } = meta;
        Ok(Tensor { buffer: Buffer::new(meta.bytes())?, dtype, offset: 0, shape, strides: None })
    }

    /// A tensor with these values; large ones are shared, not copied.
    pub(crate) fn from_data(data: TensorData) -> Result<Tensor, EngineError> {
        let TensorData { dtype, shape, bytes } = data;
        let meta = Meta::new(dtype, shape);
        if bytes.len() != meta.bytes() {
            let text = format!("{} bytes given for {dtype} {shape}", bytes.len());
            return Err(EngineError::Other(text));
        }
        // Kernels rely on bools being 0 or 1.
        let odd_bools = dtype == DType::Bool && bytes.iter().fold(0, |all, byte| all | byte) > 1;
        let aligned = (bytes.as_ptr() as usize).is_multiple_of(dtype.size());
        if bytes.len() >= COPY_BELOW && aligned && !odd_bools {
            let buffer = Buffer::foreign(bytes);
            return Ok(Tensor { buffer, dtype, offset: 0, shape, strides: None });
        }
        let mut tensor = Tensor::empty(meta)?;
        // SAFETY: the tensor is new and has `bytes.len()` bytes, as checked above.
        unsafe { copy::bytes(bytes.as_ptr(), tensor.write(), bytes.len()) };
        if odd_bools {
            // SAFETY: contiguous, just written, and of one byte each.
            let values = unsafe { std::slice::from_raw_parts_mut(tensor.write(), bytes.len()) };
            values.iter_mut().for_each(|value| *value = u8::from(*value != 0));
        }
        Ok(tensor)
    }

    /// The values of a contiguous tensor; they are shared unless that would keep much more
    /// memory alive.
    pub(crate) fn to_data(&self) -> TensorData {
        debug_assert!(self.is_contiguous());
        let (dtype, shape) = (self.dtype, self.shape);
        let length = self.meta().bytes();
        let start = self.offset as usize * dtype.size();
        let bytes = if length < 256 || self.buffer.capacity() / 4 > length {
            // SAFETY: a contiguous tensor's elements lie within its buffer from `offset` on.
            Bytes::copy_from_slice(unsafe { std::slice::from_raw_parts(self.read(), length) })
        } else if let Some(owner) = self.buffer.owner() {
            owner.slice(start..start + length)
        } else {
            Bytes::from_owner(Shared { buffer: Arc::clone(&self.buffer), start, length })
        };
        TensorData { dtype, shape, bytes }
    }

    pub fn dtype(&self) -> DType {
        self.dtype
    }

    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(crate) fn strides(&self) -> Strides {
        self.strides.as_deref().copied().unwrap_or_else(|| contiguous_strides(&self.shape))
    }

    pub fn numel(&self) -> usize {
        self.shape.numel()
    }

    pub fn meta(&self) -> Meta {
        Meta::new(self.dtype, self.shape)
    }

    /// Whether the elements lie one after another in row-major order.
    #[inline]
    pub(crate) fn is_contiguous(&self) -> bool {
        self.strides.is_none()
    }

    /// Where the first element is. Elements are at the strides from there.
    pub(crate) fn read(&self) -> *const u8 {
        // An empty tensor may have an offset beyond its memory, but nothing follows it.
        self.buffer.data().wrapping_offset(self.offset * self.dtype.size() as isize)
    }

    /// Where the first element is, to be written. Only for a tensor just made, or one that
    /// [`Tensor::is_writable`].
    pub(crate) fn write(&mut self) -> *mut u8 {
        self.read().cast_mut()
    }

    /// Whether nothing else refers to the memory, so that it can be overwritten.
    pub(crate) fn is_writable(&mut self) -> bool {
        Arc::get_mut(&mut self.buffer).is_some_and(|buffer| buffer.owner().is_none())
    }

    /// The elements of a contiguous tensor.
    pub(crate) fn as_slice<T: Element>(&self) -> &[T] {
        assert!(T::DTYPE == self.dtype && self.is_contiguous());
        if self.numel() == 0 {
            return &[];
        }
        // SAFETY: contiguous, of this type, and initialized by whoever made the tensor; it is
        // not written while `self` is borrowed, as writing needs it to be the only reference.
        unsafe { std::slice::from_raw_parts(self.read().cast(), self.numel()) }
    }

    /// The same memory seen otherwise. The caller keeps every element within the buffer.
    pub(crate) fn view(&self, offset: isize, shape: Shape, strides: Strides) -> Tensor {
        self.clone().into_view(offset, shape, strides)
    }

    /// As [`Tensor::view`], without a further reference.
    pub(crate) fn into_view(mut self, offset: isize, shape: Shape, strides: Strides) -> Tensor {
        self.offset += offset;
        self.shape = shape;
        self.strides = (!are_contiguous(&shape, &strides)).then(|| Arc::new(strides));
        self
    }

    /// A contiguous tensor under another shape of as many elements.
    pub(crate) fn with_shape(mut self, shape: Shape) -> Tensor {
        debug_assert!(self.is_contiguous() && shape.numel() == self.numel());
        self.shape = shape;
        self
    }

    /// A view with length-1 axes repeated and new ones in front, as broadcasting does.
    pub(crate) fn expand(&self, shape: &Shape) -> Tensor {
        self.view(0, *shape, self.strides_in(shape))
    }

    /// The strides with which this tensor is walked when broadcast to `shape`.
    pub(crate) fn strides_in(&self, shape: &Shape) -> Strides {
        let mut strides = [0; MAX_RANK];
        let (extra, own) = (shape.rank() - self.shape.rank(), self.strides());
        for axis in 0..self.shape.rank() {
            let repeated = self.shape.dims()[axis] == 1;
            strides[extra + axis] = if repeated { 0 } else { own[axis] };
        }
        strides
    }

    /// A view with the axes in another order.
    pub(crate) fn permute(&self, order: &[usize]) -> Tensor {
        let (mut shape, mut strides, own) = (self.shape, [0; MAX_RANK], self.strides());
        for (to, &from) in order.iter().enumerate() {
            shape = shape.with(to, self.shape.dims()[from]);
            strides[to] = own[from];
        }
        self.view(0, shape, strides)
    }

    /// The same values in row-major order; itself where they are.
    pub(crate) fn contiguous(self) -> Result<Tensor, EngineError> {
        if self.is_contiguous() {
            return Ok(self);
        }
        let mut out = Tensor::empty(self.meta())?;
        copy::into(&self, &mut out);
        Ok(out)
    }

    /// As [`Tensor::contiguous`], over threads where there is much to copy.
    pub(crate) fn contiguous_with(self, threads: &mut Threads) -> Result<Tensor, EngineError> {
        if self.is_contiguous() {
            return Ok(self);
        }
        let mut out = Tensor::empty(self.meta())?;
        copy::into_with(threads, &self, &mut out);
        Ok(out)
    }

    /// The same values in memory that may be written.
    pub(crate) fn writable(mut self) -> Result<Tensor, EngineError> {
        if self.is_contiguous() && self.is_writable() {
            return Ok(self);
        }
        let mut out = Tensor::empty(self.meta())?;
        copy::into(&self, &mut out);
        Ok(out)
    }

    /// A tensor without axes that holds a number.
    pub(crate) fn scalar(value: Scalar, dtype: DType) -> Result<Tensor, EngineError> {
        let mut tensor = Tensor::empty(Meta::new(dtype, Shape::SCALAR))?;
        let target = tensor.write();
        // SAFETY: the tensor is new and has one element of this dtype.
        with_element!(dtype, T => unsafe { target.cast::<T>().write(T::from_scalar(value)) });
        Ok(tensor)
    }
}

/// A buffer's part on loan to a reader.
struct Shared {
    buffer: Arc<Buffer>,
    start: usize,
    length: usize,
}

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `Tensor::to_data` takes the range from a contiguous tensor within the buffer;
        // as this is a further reference, nothing writes into it.
        unsafe { std::slice::from_raw_parts(self.buffer.data().add(self.start), self.length) }
    }
}
