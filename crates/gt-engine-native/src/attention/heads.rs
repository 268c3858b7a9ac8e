//! Tensors as matrices, one for each head: the axes before the last two count heads.

use gt_ir::Shape;
use gt_worker::EngineError;

use crate::element::Element;
use crate::tensor::{Strides, Tensor};
use crate::threads::Threads;

/// The matrices of a tensor, at strides that are not negative.
pub struct Heads<'a, T> {
    data: &'a [T],
    shape: Shape,
    strides: Strides,
}

/// The matrix of one head.
#[derive(Clone, Copy)]
pub struct HeadMatrix<'a, T> {
    /// Starts at the first element of the matrix.
    data: &'a [T],
    lengths: [usize; 2],
    /// The strides, in elements, between rows and between columns.
    pub steps: [usize; 2],
}

impl<'a, T: Element> Heads<'a, T> {
    /// # Panics
    /// The tensor has another dtype, a negative stride, or less than two axes.
    pub fn new(x: &'a Tensor) -> Heads<'a, T> {
        assert!(x.shape().rank() >= 2);
        Heads { data: x.span(), shape: *x.shape(), strides: x.strides() }
    }

    /// Returns the matrix of a head.
    pub fn head(&self, mut index: usize) -> HeadMatrix<'a, T> {
        let last = self.shape.rank() - 2;
        let mut offset = 0;
        for axis in (0..last).rev() {
            offset += index % self.shape[axis] * self.strides[axis] as usize;
            index /= self.shape[axis];
        }
        let steps = [0, 1].map(|axis| self.strides[last + axis] as usize);
        let data = self.data.get(offset..).unwrap_or_default();
        HeadMatrix { data, lengths: [self.shape[last], self.shape[last + 1]], steps }
    }
}

impl<'a, T: Element> HeadMatrix<'a, T> {
    /// Returns the elements from (row, column) on; those of a row are `steps[1]` apart.
    pub fn from(&self, row: usize, column: usize) -> &'a [T] {
        &self.data[row * self.steps[0] + column * self.steps[1]..]
    }

    /// Returns a row whose elements are contiguous.
    pub fn row(&self, row: usize) -> &'a [T] {
        assert!(self.steps[1] == 1 || self.lengths[1] <= 1);
        &self.data[row * self.steps[0]..][..self.lengths[1]]
    }

    /// Returns a pointer to row `first`, after checking that all `count` rows are in bounds.
    pub fn rows(&self, first: usize, count: usize) -> *const T {
        if count > 0 && self.lengths[1] > 0 {
            assert!(first + count <= self.lengths[0]);
            self.row(first + count - 1);
        }
        self.data.as_ptr().wrapping_add(first * self.steps[0])
    }
}

/// Returns the tensor itself if its rows are contiguous and no stride is negative, else a
/// contiguous copy.
pub fn in_rows(threads: &mut Threads, x: Tensor) -> Result<Tensor, EngineError> {
    let (shape, strides) = (x.shape(), x.strides());
    let last = shape.rank() - 1;
    let is_run = strides[last] == 1 || shape[last] <= 1;
    if is_run && strides[..=last].iter().all(|stride| *stride >= 0) {
        return Ok(x);
    }
    x.contiguous_with(threads)
}
