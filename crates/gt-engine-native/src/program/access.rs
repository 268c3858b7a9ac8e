//! How a group reads its inputs, tile by tile.

use gt_ir::shape::MAX_RANK;
use gt_ir::{DType, Scalar, Shape};
use gt_worker::EngineError;

use super::group::Granularity;
use crate::element::{Element, with_bits, with_element};
use crate::tensor::{Strides, Tensor};
use crate::threads::{SharedPtr, Threads};

/// The elements of a group, viewed as rows.
#[derive(Clone, Copy, Debug)]
pub struct GroupFrame {
    pub shape: Shape,
    /// The first axis within a row.
    pub split: usize,
    pub rows: usize,
    pub columns: usize,
}

/// A range of rows and columns of a frame: whole rows, or a part of one row.
#[derive(Clone, Copy, Debug)]
pub struct Tile {
    pub row: usize,
    pub rows: usize,
    pub column: usize,
    pub columns: usize,
}

impl Tile {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.rows * self.columns
    }
}

/// How an input is read.
pub enum Access {
    /// A number, the same for every element.
    Number(Scalar, DType),
    Tensor(TensorAccess),
}

/// How a tensor is read. This does not keep the tensor's memory alive; the reader must.
pub struct TensorAccess {
    data: SharedPtr<u8>,
    size: usize,
    granularity: Granularity,
    /// The stride within a row: 0 or 1.
    inner: isize,
    /// The stride of rows; if rows have no common stride, `outer` has the strides, lengths and
    /// number of their axes.
    row: isize,
    outer: Option<(Strides, [usize; MAX_RANK], usize)>,
}

/// Returns the common stride of some axes, viewed as one axis; `None` if they have none.
fn uniform(dims: &[usize], strides: &[isize]) -> Option<isize> {
    let mut known: Option<(isize, isize)> = None;
    for (&length, &stride) in dims.iter().zip(strides).rev() {
        if length == 1 {
            continue;
        }
        match known {
            None => known = Some((stride, stride * length as isize)),
            Some((step, next)) if next == stride => {
                known = Some((step, next * length as isize));
            }
            Some(_) => return None,
        }
    }
    Some(known.map_or(0, |(step, _)| step))
}

/// Returns the first axis at which rows may be split so that each tensor is contiguous or one
/// repeated element within a row.
pub fn natural_split(shape: &Shape, tensors: &[&Tensor]) -> usize {
    let strides: Vec<Strides> = tensors.iter().map(|tensor| tensor.strides_in(shape)).collect();
    let dims = shape.dims();
    let fits = |split: &usize| {
        strides.iter().all(|strides| {
            uniform(&dims[*split..], &strides[*split..dims.len()])
                .is_some_and(|step| step == 0 || step == 1)
        })
    };
    (0..=dims.len()).find(fits).unwrap_or(dims.len())
}

/// Returns the tensor, or a copy of it, so that its rows are contiguous or one repeated element.
pub fn readable(
    threads: &mut Threads,
    tensor: Tensor,
    shape: &Shape,
    split: Option<usize>,
) -> Result<Tensor, EngineError> {
    let strides = tensor.strides_in(shape);
    let rank = shape.rank();
    let inner = match split {
        Some(split) => uniform(&shape.dims()[split..], &strides[split..rank]),
        // Without a split only the last axis matters.
        None => {
            let last = (0..rank).rev().find(|&axis| shape.dims()[axis] != 1);
            Some(last.map_or(0, |axis| strides[axis]))
        }
    };
    match inner {
        Some(0 | 1) => Ok(tensor),
        _ if inner.is_some() => tensor.contiguous_with(threads),
        // Even a contiguous tensor has to be expanded if it repeats within rows.
        _ => tensor.expand(shape).contiguous_with(threads),
    }
}

impl TensorAccess {
    /// Creates the access to a tensor in a frame.
    ///
    /// # Panics
    /// The tensor does not broadcast to the frame's shape, or is not [`readable`] in its rows.
    pub fn new(tensor: &Tensor, frame: &GroupFrame, granularity: Granularity) -> TensorAccess {
        let GroupFrame { shape, split, .. } = *frame;
        let rank = shape.rank();
        let strides = match granularity {
            Granularity::PerElement => tensor.strides_in(&shape),
            Granularity::PerRow => {
                let rows = (split..rank).fold(shape, |shape, axis| shape.with(axis, 1));
                tensor.strides_in(&rows)
            }
        };
        let dims = shape.dims();
        let inner = match granularity {
            Granularity::PerElement => uniform(&dims[split..], &strides[split..rank]),
            Granularity::PerRow => Some(0),
        };
        let row = uniform(&dims[..split], &strides[..split]);
        let outer = row.is_none().then(|| {
            let mut lengths = [1; MAX_RANK];
            lengths[..split].copy_from_slice(&dims[..split]);
            (strides, lengths, split)
        });
        TensorAccess {
            data: SharedPtr::new(tensor.read().cast_mut()),
            size: tensor.dtype().size(),
            granularity,
            inner: inner.expect("inputs have been made readable"),
            row: row.unwrap_or(0),
            outer,
        }
    }

    /// Returns the address of a row's first element.
    fn row(&self, row: usize) -> *const u8 {
        let offset = match &self.outer {
            None => row as isize * self.row,
            Some((strides, lengths, split)) => {
                let mut rest = row;
                let mut offset = 0;
                for axis in (0..*split).rev() {
                    offset += (rest % lengths[axis]) as isize * strides[axis];
                    rest /= lengths[axis];
                }
                offset
            }
        };
        self.data.get().wrapping_offset(offset * self.size as isize).cast_const()
    }

    /// Returns whether all tiles of one size have the same elements.
    pub fn repeats(&self) -> bool {
        self.outer.is_none() && self.row == 0
    }

    /// Returns whether all elements are the same.
    pub fn is_constant(&self) -> bool {
        self.repeats() && self.inner == 0
    }

    /// Returns the address of a tile's elements, if they are contiguous.
    pub fn direct(&self, tile: &Tile, columns: usize) -> Option<*const u8> {
        match self.granularity {
            Granularity::PerElement if self.inner == 1 || tile.columns == 1 && columns == 1 => {
                let follows = tile.rows == 1
                    || self.outer.is_none() && self.row == columns as isize && columns > 0;
                let offset = tile.column * self.size;
                follows.then(|| self.row(tile.row).wrapping_add(offset))
            }
            Granularity::PerRow if tile.rows == 1 || self.outer.is_none() && self.row == 1 => {
                Some(self.row(tile.row))
            }
            _ => None,
        }
    }

    /// Copies a tile's elements into a block.
    ///
    /// # Safety
    /// The tensor's memory is alive. The tile is within the frame that this was created for, and
    /// the block has space for its elements, aligned.
    pub unsafe fn fill(&self, tile: &Tile, block: *mut u8) {
        // SAFETY: the caller's promise. As the tensor broadcasts to the frame's shape, the tile's
        // rows are rows of it, each of one element or of as many as the frame's.
        with_bits!(self.size, T => unsafe {
            let block = block.cast::<T>();
            for index in 0..tile.rows {
                let from = self.row(tile.row + index).cast::<T>();
                match self.granularity {
                    Granularity::PerRow => block.add(index).write(*from),
                    Granularity::PerElement => {
                        let to = block.add(index * tile.columns);
                        if self.inner == 1 {
                            let from = from.add(tile.column);
                            std::ptr::copy_nonoverlapping(from, to, tile.columns);
                        } else {
                            fill_run(to, *from, tile.columns);
                        }
                    }
                }
            }
        })
    }
}

/// Fills a block with a number.
///
/// # Safety
/// The block has space for `n` elements of the dtype, aligned.
pub unsafe fn fill_number(number: Scalar, dtype: DType, block: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    with_element!(dtype, T => unsafe { fill_run(block.cast::<T>(), T::from_scalar(number), n) });
}

/// # Safety
/// There is space for `n` elements, aligned.
#[inline]
pub unsafe fn fill_run<T: Copy>(to: *mut T, value: T, n: usize) {
    for i in 0..n {
        // SAFETY: the caller's promise; i is below n.
        unsafe { to.add(i).write(value) }
    }
}
