//! PyTorch's sizes, strides and offset: where the elements of a tensor would be in the storage that
//! it shares with its base. They decide which results are views and which are copies.

use gt_ir::operation::ints;
use gt_ir::ops::{complex, shape, slice};
use gt_ir::shape::{MAX_RANK, axis};
use gt_ir::{Attributes, Operation, Shape};
use smallvec::SmallVec;

use crate::error::{ClientError, Result};

/// A strided layout: an element is at offset + index · strides.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Strided {
    pub shape: Shape,
    pub strides: [i64; MAX_RANK],
    pub offset: i64,
}

impl Strided {
    /// Returns the layout of elements in row-major order, without gaps.
    pub fn contiguous(shape: Shape) -> Strided {
        let mut strides = [0; MAX_RANK];
        let mut step = 1;
        for axis in (0..shape.rank()).rev() {
            strides[axis] = step;
            step *= shape[axis].max(1) as i64;
        }
        Strided { shape, strides, offset: 0 }
    }

    /// Returns whether the elements are in row-major order, without gaps.
    pub fn is_contiguous(&self) -> bool {
        let plain = Strided::contiguous(self.shape);
        self.shape.numel() == 0
            || (0..self.shape.rank())
                .all(|axis| self.shape[axis] == 1 || self.strides[axis] == plain.strides[axis])
    }

    /// Returns an error if several elements are one in memory, as along an expanded axis.
    pub(crate) fn check_writable(&self, operation: &str) -> Result<()> {
        if !self.overlaps() {
            return Ok(());
        }
        let shape = self.shape;
        Err(ClientError::usage(format!(
            "{operation}: several elements of this view of shape {shape} are one element of its base, so they cannot be changed in place\n  hint: clone() it first"
        )))
    }

    /// Returns whether several elements are one in memory: an axis has a stride that the axes of
    /// smaller strides reach.
    pub(crate) fn overlaps(&self) -> bool {
        let axes = (0..self.shape.rank()).filter(|&axis| self.shape[axis] > 1);
        let mut axes: SmallVec<[(i64, i64); MAX_RANK]> =
            axes.map(|axis| (self.strides[axis], self.shape[axis] as i64 - 1)).collect();
        axes.sort_unstable();
        let mut reach = 0;
        self.shape.numel() > 0
            && axes.iter().any(|&(stride, steps)| {
                let overlaps = stride <= reach;
                reach += stride * steps;
                overlaps
            })
    }

    /// Returns the layout after an operation that rearranges; `None` if the result is a copy.
    pub fn after(&self, operation: &Operation, given: &Attributes) -> Option<Strided> {
        match operation.id {
            id if id == shape::PERMUTE.id => self.permuted(ints(given, 0)),
            id if id == shape::EXPAND.id => self.expanded(ints(given, 0)),
            id if id == slice::SLICE.id => {
                self.sliced(ints(given, 0), ints(given, 1), ints(given, 2))
            }
            id if id == shape::RESHAPE.id => self.reshaped(ints(given, 0)),
            id if id == complex::VIEW_AS_REAL.id => self.as_real(),
            id if id == complex::VIEW_AS_COMPLEX.id => self.as_complex(),
            _ => None,
        }
    }

    fn permuted(&self, order: &[i64]) -> Option<Strided> {
        let mut turned = *self;
        for (to, &from) in order.iter().enumerate() {
            let from = axis(from, self.shape.rank(), "permute").ok()?;
            turned.shape = turned.shape.with(to, self.shape[from]);
            turned.strides[to] = self.strides[from];
        }
        Some(turned)
    }

    fn expanded(&self, dims: &[i64]) -> Option<Strided> {
        let lengths: Vec<usize> = dims.iter().map(|&dim| dim as usize).collect();
        let mut wide =
            Strided { shape: Shape::new(&lengths).ok()?, strides: [0; MAX_RANK], ..*self };
        let new = lengths.len() - self.shape.rank();
        for axis in 0..self.shape.rank() {
            let repeats = self.shape[axis] != lengths[new + axis];
            wide.strides[new + axis] = if repeats { 0 } else { self.strides[axis] };
        }
        Some(wide)
    }

    fn sliced(&self, starts: &[i64], sizes: &[i64], steps: &[i64]) -> Option<Strided> {
        let mut part = *self;
        for axis in 0..self.shape.rank() {
            part.offset += starts[axis] * self.strides[axis];
            part.strides[axis] *= steps[axis];
            part.shape = part.shape.with(axis, sizes[axis] as usize);
        }
        Some(part)
    }

    /// Returns the layout of the parts of complex numbers, along a new last axis.
    fn as_real(&self) -> Option<Strided> {
        let rank = self.shape.rank();
        let dims = [self.shape.dims(), &[2]].concat();
        let mut parts = Strided {
            shape: Shape::new(&dims).ok()?,
            strides: [0; MAX_RANK],
            offset: self.offset * 2,
        };
        for axis in 0..rank {
            parts.strides[axis] = self.strides[axis] * 2;
        }
        parts.strides[rank] = 1;
        Some(parts)
    }

    /// Returns the layout of complex numbers whose adjacent parts are along the last axis.
    fn as_complex(&self) -> Option<Strided> {
        let rank = self.shape.rank() - 1;
        let whole = |count: i64| count % 2 == 0;
        let fits = self.strides[rank] == 1
            && whole(self.offset)
            && (0..rank).all(|axis| self.shape[axis] == 1 || whole(self.strides[axis]));
        if !fits {
            return None;
        }
        let mut joined = Strided {
            shape: Shape::new(&self.shape.dims()[..rank]).ok()?,
            strides: [0; MAX_RANK],
            offset: self.offset / 2,
        };
        for axis in 0..rank {
            joined.strides[axis] = self.strides[axis] / 2;
        }
        Some(joined)
    }

    /// Reshapes each run of axes that are contiguous among themselves; `None` if the shape does not
    /// split into the runs.
    fn reshaped(&self, dims: &[i64]) -> Option<Strided> {
        let lengths: Vec<usize> = dims.iter().map(|&dim| dim as usize).collect();
        let to = Shape::new(&lengths).ok()?;
        if self.shape.numel() == 0 {
            return Some(Strided { offset: self.offset, ..Strided::contiguous(to) });
        }
        let mut strides = [0; MAX_RANK];
        let mut next = to.rank();
        let rank = self.shape.rank();
        // From the last axis backwards: the elements of a run, and the stride of its last axis.
        let (mut run, mut base) = (1usize, if rank == 0 { 1 } else { self.strides[rank - 1] });
        for axis in (0..rank).rev() {
            run *= self.shape[axis];
            let ends = axis == 0
                || (self.shape[axis - 1] != 1 && self.strides[axis - 1] != run as i64 * base);
            if !ends {
                continue;
            }
            let mut filled = 1;
            while next > 0 && (filled < run || to[next - 1] == 1) {
                next -= 1;
                strides[next] = filled as i64 * base;
                filled *= to[next];
            }
            if filled != run {
                return None;
            }
            if axis > 0 {
                (run, base) = (1, self.strides[axis - 1]);
            }
        }
        // The remaining axes have length 1.
        while next > 0 {
            next -= 1;
            strides[next] = to[next..].iter().skip(1).product::<usize>() as i64;
        }
        Some(Strided { shape: to, strides, offset: self.offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dims: &[usize]) -> Shape {
        Shape::new(dims).unwrap()
    }

    fn strides(of: &[i64]) -> [i64; MAX_RANK] {
        let mut strides = [0; MAX_RANK];
        strides[..of.len()].copy_from_slice(of);
        strides
    }

    #[test]
    fn reshapes_of_contiguous_memory_are_views() {
        let plain = Strided::contiguous(shape(&[2, 3, 4]));
        let other = plain.reshaped(&[6, 2, 1, 2]).unwrap();
        assert_eq!(other, Strided::contiguous(shape(&[6, 2, 1, 2])));
    }

    #[test]
    fn a_transpose_cannot_be_flattened_without_a_copy() {
        let turned = Strided::contiguous(shape(&[2, 3])).permuted(&[1, 0]).unwrap();
        assert!(!turned.is_contiguous());
        assert_eq!(turned.reshaped(&[6]), None);
        assert_eq!(turned.reshaped(&[3, 1, 2]).unwrap().strides[..3], [1, 6, 3]);
    }

    #[test]
    fn windows_overlap_if_strides_are_short() {
        let windows =
            |stride| Strided { shape: shape(&[3, 2]), strides: strides(&[stride, 1]), offset: 0 };
        assert!(windows(1).check_writable("add_").is_err());
        assert!(windows(0).check_writable("add_").is_err());
        assert!(windows(2).check_writable("add_").is_ok());
    }

    #[test]
    fn complex_numbers_are_two_floats() {
        let plain = Strided::contiguous(shape(&[3, 4])).permuted(&[1, 0]).unwrap();
        let parts = plain.as_real().unwrap();
        assert_eq!(parts.strides[..3], [2, 8, 1]);
        assert_eq!(parts.as_complex(), Some(plain));
        assert_eq!(parts.permuted(&[2, 1, 0]).unwrap().as_complex(), None);
    }

    #[test]
    fn a_slice_has_an_offset() {
        let part = Strided::contiguous(shape(&[4, 6])).sliced(&[1, 2], &[2, 2], &[1, 2]).unwrap();
        assert_eq!((part.offset, &part.strides[..2]), (8, &[6, 2][..]));
        assert_eq!(part.reshaped(&[4]), None);
    }
}
