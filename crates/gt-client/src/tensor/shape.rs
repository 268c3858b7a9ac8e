//! Operations that rearrange elements: reshape, permute, slice, concatenate.

use gt_ir::instruction::Attribute;
use gt_ir::ops::{shape as ops, slice};
use gt_ir::shape::{axes, axis};
use gt_ir::{Error, Operand, Shape};
use smallvec::{SmallVec, smallvec};

use super::Tensor;
use crate::error::{ClientError, Result};

impl Tensor {
    /// Returns the values in another shape; one length may be -1, and is inferred.
    #[track_caller]
    pub fn reshape(&self, dims: &[i64]) -> Result<Tensor> {
        let from = self.shape();
        let wrong = || Error::Reshape { operation: "reshape", from, to: dims.to_vec() };
        let open = dims.iter().filter(|&&dim| dim == -1).count();
        let known: i64 = dims.iter().filter(|&&dim| dim != -1).product();
        if open > 1 || dims.iter().any(|&dim| dim < -1) {
            return Err(wrong().into());
        }
        let mut target: SmallVec<[i64; 8]> = dims.into();
        if let Some(slot) = target.iter_mut().find(|dim| **dim == -1) {
            if known == 0 || from.numel() as i64 % known != 0 {
                return Err(wrong().into());
            }
            *slot = from.numel() as i64 / known;
        }
        self.apply_unary(&ops::RESHAPE, smallvec![Attribute::ints(&target)])
    }

    /// Merges the axes from `start` to `end`, both included, into one.
    #[track_caller]
    pub fn flatten(&self, start: i64, end: i64) -> Result<Tensor> {
        let shape = self.shape();
        if shape.rank() == 0 {
            return self.reshape(&[1]);
        }
        let (start, end) =
            (axis(start, shape.rank(), "flatten")?, axis(end, shape.rank(), "flatten")?);
        if start > end {
            return Err(ClientError::usage(format!(
                "flatten: the first axis, {start}, comes after the last, {end}"
            )));
        }
        let merged: usize = shape[start..=end].iter().product();
        let dims: Vec<i64> = shape[..start]
            .iter()
            .chain([&merged])
            .chain(&shape[end + 1..])
            .map(|&dim| dim as i64)
            .collect();
        self.reshape(&dims)
    }

    /// Swaps two axes.
    #[track_caller]
    pub fn transpose(&self, first: i64, second: i64) -> Result<Tensor> {
        let rank = self.rank();
        if rank == 0 {
            return self.copy();
        }
        let (first, second) = (axis(first, rank, "transpose")?, axis(second, rank, "transpose")?);
        let mut order: SmallVec<[i64; 8]> = (0..rank as i64).collect();
        order.swap(first, second);
        self.permute(&order)
    }

    /// Reverses the axes; of a matrix, returns the transpose.
    #[track_caller]
    pub fn t(&self) -> Result<Tensor> {
        let order: SmallVec<[i64; 8]> = (0..self.rank() as i64).rev().collect();
        self.permute(&order)
    }

    /// Inserts an axis of length 1 at `at`.
    #[track_caller]
    pub fn unsqueeze(&self, at: i64) -> Result<Tensor> {
        let shape = self.shape();
        let at = axis(at, shape.rank() + 1, "unsqueeze")?;
        let dims: Vec<i64> =
            shape[..at].iter().chain([&1]).chain(&shape[at..]).map(|&dim| dim as i64).collect();
        self.reshape(&dims)
    }

    /// Removes the axes of `over` that have length 1; all such axes if `over` is empty.
    #[track_caller]
    pub fn squeeze(&self, over: &[i64]) -> Result<Tensor> {
        let shape = self.shape();
        let gone = axes(over, shape.rank(), "squeeze")?;
        let kept = (0..shape.rank()).filter(|at| shape[*at] != 1 || !gone.contains(at));
        let dims: Vec<i64> = kept.map(|at| shape[at] as i64).collect();
        self.reshape(&dims)
    }

    /// Repeats axes of length 1; -1 leaves an axis unchanged.
    #[track_caller]
    pub fn expand(&self, dims: &[i64]) -> Result<Tensor> {
        let shape = self.shape();
        let mut target: SmallVec<[i64; 8]> = dims.into();
        for (at, dim) in target.iter_mut().enumerate().filter(|(_, dim)| **dim == -1) {
            let own = (at + shape.rank()).checked_sub(dims.len());
            *dim = own.map(|own| shape[own] as i64).ok_or_else(|| Error::ShapeMismatch {
                operation: "expand",
                given: shape,
                expected: "lengths of 0 or more for new axes, not -1".into(),
            })?;
        }
        self.apply_unary(&ops::EXPAND, smallvec![Attribute::ints(&target)])
    }

    /// Concatenates tensors along an axis.
    ///
    /// # Errors
    /// The list is empty, or the shapes differ on another axis.
    #[track_caller]
    pub fn cat(tensors: &[Tensor], along: i64) -> Result<Tensor> {
        let first =
            tensors.first().ok_or_else(|| ClientError::usage("cat: no tensors were given"))?;
        let operands: SmallVec<[Operand<&Tensor>; 8]> =
            tensors.iter().map(Operand::Tensor).collect();
        Tensor::apply(&first.session(), &ops::CAT, &operands, smallvec![Attribute::Int(along)])
    }

    /// Stacks tensors of one shape along a new axis.
    #[track_caller]
    pub fn stack(tensors: &[Tensor], at: i64) -> Result<Tensor> {
        let first =
            tensors.first().ok_or_else(|| ClientError::usage("stack: no tensors were given"))?;
        let at = axis(at, first.rank() + 1, "stack")? as i64;
        for tensor in tensors {
            if tensor.shape() != first.shape() {
                return Err(Error::ShapeMismatch {
                    operation: "stack",
                    given: tensor.shape(),
                    expected: format!("the first one's {}", first.shape()),
                }
                .into());
            }
        }
        let raised =
            tensors.iter().map(|tensor| tensor.unsqueeze(at)).collect::<Result<Vec<_>>>()?;
        Tensor::cat(&raised, at)
    }

    /// Splits the tensor into parts of the given lengths along an axis.
    ///
    /// # Errors
    /// The lengths do not add up to the axis.
    #[track_caller]
    pub fn split_sizes(&self, sizes: &[usize], along: i64) -> Result<Vec<Tensor>> {
        let at = axis(along, self.rank(), "split")?;
        let length = self.shape().get(at).copied().unwrap_or(1);
        if sizes.iter().sum::<usize>() != length || self.rank() == 0 {
            return Err(ClientError::usage(format!(
                "split: lengths {sizes:?} do not add up to axis {at} of shape {}",
                self.shape()
            )));
        }
        let mut start = 0;
        let mut parts = Vec::with_capacity(sizes.len());
        for &size in sizes {
            parts.push(self.narrow(at as i64, start, size)?);
            start += size;
        }
        Ok(parts)
    }

    /// Splits the tensor into parts of length `size` along an axis; the last may be shorter.
    #[track_caller]
    pub fn split(&self, size: usize, along: i64) -> Result<Vec<Tensor>> {
        let at = axis(along, self.rank(), "split")?;
        let length = self.shape().get(at).copied().unwrap_or(1);
        if size == 0 && length > 0 {
            return Err(ClientError::usage("split: the length of a part must not be 0"));
        }
        if length == 0 {
            return self.split_sizes(&[0], along);
        }
        let sizes: Vec<usize> =
            (0..length).step_by(size).map(|start| size.min(length - start)).collect();
        self.split_sizes(&sizes, along)
    }

    /// Splits the tensor into at most `parts` parts of equal length along an axis; the last may be
    /// shorter.
    #[track_caller]
    pub fn chunk(&self, parts: usize, along: i64) -> Result<Vec<Tensor>> {
        if parts == 0 {
            return Err(ClientError::usage("chunk: the number of parts must not be 0"));
        }
        let at = axis(along, self.rank(), "chunk")?;
        let length = self.shape().get(at).copied().unwrap_or(1);
        self.split(length.div_ceil(parts).max(1), along)
    }

    /// Returns `length` elements along an axis, from `start` on.
    #[track_caller]
    pub fn narrow(&self, along: i64, start: usize, length: usize) -> Result<Tensor> {
        let shape = self.shape();
        let at = axis(along, shape.rank(), "narrow")?;
        let mut starts: SmallVec<[i64; 8]> = smallvec![0; shape.rank()];
        let mut sizes: SmallVec<[i64; 8]> = shape.iter().map(|&dim| dim as i64).collect();
        starts[at] = start as i64;
        sizes[at] = length as i64;
        self.region(&starts, &sizes, &SmallVec::<[i64; 8]>::from_elem(1, shape.rank()))
    }

    /// Returns a strided region: along each axis, `sizes` elements from `starts` on, in steps of
    /// `steps`.
    #[track_caller]
    pub fn region(&self, starts: &[i64], sizes: &[i64], steps: &[i64]) -> Result<Tensor> {
        let attributes =
            smallvec![Attribute::ints(starts), Attribute::ints(sizes), Attribute::ints(steps)];
        self.apply_unary(&slice::SLICE, attributes)
    }

    /// Returns the tensor's shape as `i64`, for attributes.
    pub(crate) fn dims(&self) -> SmallVec<[i64; 8]> {
        self.shape().iter().map(|&dim| dim as i64).collect()
    }

    /// Returns this tensor expanded to `shape`; itself if it has that shape already.
    #[track_caller]
    pub(crate) fn expand_to(&self, shape: &Shape) -> Result<Tensor> {
        if self.shape() == *shape {
            return Ok(self.clone());
        }
        let dims: SmallVec<[i64; 8]> = shape.iter().map(|&dim| dim as i64).collect();
        self.expand(&dims)
    }
}
