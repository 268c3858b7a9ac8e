//! Resolves an index expression against a shape: checks bounds, wraps negative indices, expands the
//! ellipsis.

use gt_ir::{DType, Error, Shape};
use smallvec::SmallVec;

use super::mask::{mask_indices, scalar_mask_index};
use super::{Index, Tensor};
use crate::driver::Interrupt;
use crate::error::Result;

/// A resolved index expression, applied in this order: a strided region is sliced, reshaped to
/// `dims`, and indexed by tensors.
pub(super) struct Resolved {
    pub(super) starts: SmallVec<[i64; 8]>,
    pub(super) sizes: SmallVec<[i64; 8]>,
    pub(super) steps: SmallVec<[i64; 8]>,
    /// The region's shape without the axes indexed by a number, and with the new axes.
    pub(super) dims: SmallVec<[i64; 8]>,
    /// The index tensors, each with the axis of `dims` it indexes.
    pub(super) tensors: Vec<(usize, Tensor)>,
}

impl Tensor {
    /// Resolves an index expression against this tensor's shape. Waits for the numbers of masks'
    /// true values.
    pub(super) fn resolve(&self, entries: &[Index], interrupt: Interrupt) -> Result<Resolved> {
        let shape = self.shape();
        let used = axes_used(entries);
        if used > shape.rank() {
            return Err(Error::TooManyIndices { given: used, shape }.into());
        }
        if entries.iter().filter(|entry| matches!(entry, Index::Ellipsis)).count() > 1 {
            return Err(Error::RepeatedEllipsis.into());
        }
        let mut resolved = Resolved {
            starts: SmallVec::new(),
            sizes: SmallVec::new(),
            steps: SmallVec::new(),
            dims: SmallVec::new(),
            tensors: Vec::new(),
        };
        for entry in entries {
            match entry {
                Index::Ellipsis => (0..shape.rank() - used).for_each(|_| resolved.whole(&shape)),
                Index::NewAxis => resolved.dims.push(1),
                Index::Bool(value) => {
                    let count = Shape::new(&[usize::from(*value)])?;
                    let indices = Tensor::full(&self.session(), count, 0i64, DType::I64)?;
                    resolved.tensors.push((resolved.dims.len(), indices));
                    resolved.dims.push(1);
                }
                Index::Tensor(mask) if mask.dtype() == DType::Bool && mask.rank() == 0 => {
                    let indices = scalar_mask_index(mask, interrupt)?;
                    resolved.tensors.push((resolved.dims.len(), indices));
                    resolved.dims.push(1);
                }
                Index::At(at) => resolved.at(&shape, *at)?,
                Index::Slice { start, stop, step } => {
                    resolved.slice(&shape, *start, *stop, *step)?;
                }
                Index::Tensor(mask) if mask.dtype() == DType::Bool => {
                    for indices in mask_indices(&shape, resolved.starts.len(), mask, interrupt)? {
                        resolved.tensors.push((resolved.dims.len(), indices));
                        resolved.whole(&shape);
                    }
                }
                Index::Tensor(index) => {
                    resolved.tensors.push((resolved.dims.len(), index.clone()));
                    resolved.whole(&shape);
                }
            }
        }
        while resolved.starts.len() < shape.rank() {
            resolved.whole(&shape);
        }
        Ok(resolved)
    }
}

/// Returns the number of axes that the entries index.
pub(super) fn axes_used(entries: &[Index]) -> usize {
    let used = |entry: &Index| match entry {
        Index::At(_) | Index::Slice { .. } => 1,
        Index::Tensor(tensor) if tensor.dtype() == DType::Bool => tensor.rank(),
        Index::Tensor(_) => 1,
        Index::NewAxis | Index::Ellipsis | Index::Bool(_) => 0,
    };
    entries.iter().map(used).sum()
}

impl Resolved {
    /// Adds the region of the next axis.
    fn region(&mut self, start: i64, size: i64, step: i64) {
        self.starts.push(start);
        self.sizes.push(size);
        self.steps.push(step);
    }

    /// Takes the full next axis.
    fn whole(&mut self, shape: &Shape) {
        let length = shape[self.starts.len()] as i64;
        self.region(0, length, 1);
        self.dims.push(length);
    }

    /// Takes one element of the next axis, which is dropped from the result.
    fn at(&mut self, shape: &Shape, at: i64) -> Result<()> {
        let axis = self.starts.len();
        let length = shape[axis];
        let index = if at < 0 { at + length as i64 } else { at };
        if index < 0 || index >= length as i64 {
            return Err(Error::BadIndex { operation: "indexing", index: at, axis, length }.into());
        }
        self.region(index, 1, 1);
        Ok(())
    }

    /// Takes a slice of the next axis, clipped to its length as Python does.
    fn slice(
        &mut self,
        shape: &Shape,
        start: Option<i64>,
        stop: Option<i64>,
        step: i64,
    ) -> Result<()> {
        if step < 1 {
            return Err(Error::BadStep { step }.into());
        }
        let length = shape[self.starts.len()] as i64;
        let clip =
            |end: i64| (if end < 0 { end.saturating_add(length) } else { end }).clamp(0, length);
        let start = start.map_or(0, clip);
        let stop = stop.map_or(length, clip);
        let size = (stop - start).max(0).div_euclid(step)
            + i64::from((stop - start).max(0).rem_euclid(step) != 0);
        self.region(start, size, if size == 0 { 1 } else { step });
        self.dims.push(size);
        Ok(())
    }
}
