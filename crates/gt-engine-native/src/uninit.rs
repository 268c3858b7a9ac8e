//! Tensors that are being written.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use gt_ir::{DType, Meta, Shape};
use gt_worker::EngineError;

use crate::buffer::Buffer;
use crate::element::Element;
use crate::tensor::{Strides, Tensor, are_within, bytes_of, contiguous_strides};

/// A contiguous tensor that is being written. Its memory is not shared and may be uninitialized, so
/// the tensor becomes visible only when every element is written.
pub(crate) struct Uninit(Tensor);

impl Uninit {
    /// Allocates a tensor.
    #[inline]
    pub fn new(meta: Meta) -> Result<Uninit, EngineError> {
        let bytes = bytes_of(meta).ok_or(EngineError::OutOfMemory { bytes: usize::MAX })?;
        let buffer = Buffer::new(bytes)?;
        // SAFETY: the buffer has that length and is aligned for any dtype. The tensor is not
        // visible until `finish`, when all of the buffer has been written.
        Ok(Uninit(unsafe { Tensor::over_memory(buffer, meta) }))
    }

    /// Reuses the memory of a tensor.
    ///
    /// # Panics
    /// The tensor is not contiguous, or not [`Tensor::is_writable`].
    #[inline]
    pub fn over(mut tensor: Tensor) -> Uninit {
        assert!(tensor.is_contiguous() && tensor.is_writable());
        Uninit(tensor)
    }

    pub fn meta(&self) -> Meta {
        self.0.meta()
    }

    pub fn shape(&self) -> &Shape {
        self.0.shape()
    }

    pub fn dtype(&self) -> DType {
        self.0.dtype()
    }

    pub fn numel(&self) -> usize {
        self.0.numel()
    }

    /// Returns the address of the first element; the others follow in row-major order. They may be
    /// written while this is borrowed.
    #[inline]
    pub fn write(&mut self) -> *mut u8 {
        self.0.read().cast_mut()
    }

    /// Returns the elements as slots.
    #[inline]
    pub fn slots<T: Element>(&mut self) -> &mut [MaybeUninit<T>] {
        let () = T::FITS;
        assert!(T::DTYPE == self.dtype());
        let numel = self.numel();
        if numel == 0 {
            return &mut [];
        }
        // SAFETY: the memory has space for this many elements of this size and is aligned for them.
        // It is not shared, and `self` is borrowed for as long as the slots are.
        unsafe { std::slice::from_raw_parts_mut(self.write().cast(), numel) }
    }

    /// Fills the elements with zeros and returns them.
    pub fn zeroed<T: Element>(&mut self) -> &mut [T] {
        zeroed(self.slots())
    }

    /// Returns a region of the memory, to be written.
    ///
    /// # Panics
    /// The region reaches beyond the tensor.
    pub fn region(&mut self, offset: isize, shape: Shape, strides: Strides) -> Region<'_> {
        assert!(are_within(self.numel(), offset, &shape, &strides), "a region beyond its tensor");
        let dtype = self.dtype();
        let data = self.write().wrapping_offset(offset * dtype.size() as isize);
        Region { data, dtype, shape, strides, memory: PhantomData }
    }

    /// Returns all elements as a region.
    pub fn whole(&mut self) -> Region<'_> {
        let shape = *self.shape();
        self.region(0, shape, contiguous_strides(&shape))
    }

    /// Returns the tensor.
    ///
    /// # Safety
    /// Every element has been written; memory reused by [`Uninit::over`] counts as written.
    #[inline]
    pub unsafe fn finish(self) -> Tensor {
        self.0
    }
}

/// Elements at any strides, borrowed exclusively in order to write them.
pub(crate) struct Region<'a> {
    /// The address of the first element.
    data: *mut u8,
    dtype: DType,
    shape: Shape,
    strides: Strides,
    memory: PhantomData<&'a mut [u8]>,
}

impl Region<'_> {
    pub fn meta(&self) -> Meta {
        Meta::new(self.dtype, self.shape)
    }

    pub fn strides(&self) -> &Strides {
        &self.strides
    }

    /// Returns the address of the first element; the others are at the strides from there. All of
    /// them may be written while this is borrowed.
    pub fn write(&mut self) -> *mut u8 {
        self.data
    }
}

impl Tensor {
    /// Returns a region of the tensor to be written; `None` if something else refers to its memory.
    ///
    /// # Panics
    /// The tensor is not contiguous, or the region reaches beyond it.
    pub(crate) fn region(
        &mut self,
        offset: isize,
        shape: Shape,
        strides: Strides,
    ) -> Option<Region<'_>> {
        assert!(self.is_contiguous());
        assert!(are_within(self.numel(), offset, &shape, &strides), "a region beyond its tensor");
        if !self.is_writable() {
            return None;
        }
        let dtype = self.dtype();
        let data = self.read().cast_mut().wrapping_offset(offset * dtype.size() as isize);
        Some(Region { data, dtype, shape, strides, memory: PhantomData })
    }
}

/// Fills slots with zeros and returns them as elements.
pub fn zeroed<T: Element>(slots: &mut [MaybeUninit<T>]) -> &mut [T] {
    slots.fill(MaybeUninit::new(T::zeroed()));
    // SAFETY: filled in the line above.
    unsafe { &mut *(std::ptr::from_mut(slots) as *mut [T]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(dims: &[usize]) -> Meta {
        Meta::new(DType::I32, Shape::new(dims).unwrap())
    }

    fn numbers(dims: &[usize]) -> Tensor {
        let mut out = Uninit::new(meta(dims)).unwrap();
        for (number, slot) in out.slots::<i32>().iter_mut().enumerate() {
            slot.write(number as i32);
        }
        // SAFETY: every slot has been written.
        unsafe { out.finish() }
    }

    #[test]
    fn memory_is_taken_over_only_from_the_last_reference() {
        let x = numbers(&[3, 4]);
        let other = x.clone();
        assert!(std::panic::catch_unwind(|| Uninit::over(x)).is_err());
        let mut out = Uninit::over(other);
        out.slots::<i32>()[5].write(-1);
        // SAFETY: the memory is reused, so it counts as written.
        let x = unsafe { out.finish() };
        assert_eq!(x.as_slice::<i32>()[4..7], [4, -1, 6]);
        let transposed = x.permute(&[1, 0]);
        drop(x);
        assert!(std::panic::catch_unwind(|| Uninit::over(transposed)).is_err());
    }

    #[test]
    fn sizes_beyond_the_address_space_are_errors() {
        let huge = Shape::new(&[1, 1]).unwrap().with(0, 1 << 63).with(1, 2);
        assert!(Uninit::new(Meta::new(DType::U8, huge)).is_err());
        assert!(Uninit::new(meta(&[1 << 24, 1 << 24])).is_err());
    }

    #[test]
    #[should_panic(expected = "beyond")]
    fn a_region_lies_within_its_tensor() {
        let mut out = Uninit::new(meta(&[3, 4])).unwrap();
        out.region(1, meta(&[3, 4]).shape, contiguous_strides(&meta(&[3, 4]).shape));
    }

    #[test]
    #[should_panic(expected = "beyond")]
    fn a_view_lies_within_its_tensor() {
        let x = numbers(&[3, 4]);
        x.view(-1, Shape::SCALAR, [0; 8]);
    }

    #[test]
    #[should_panic(expected = "does not broadcast")]
    fn a_view_repeats_only_axes_of_length_one() {
        numbers(&[3, 4]).expand(&meta(&[6, 4]).shape);
    }
}
