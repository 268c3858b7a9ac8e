//! Index tensors: range checks, gather, and the elements that an index selects along an axis.

use std::ops::Range;

use gt_ir::instruction::Operands;
use gt_ir::operation::int;
use gt_ir::shape::{MAX_RANK, axis};
use gt_ir::{Attributes, DType, Meta, Shape};
use gt_worker::EngineError;

use crate::cast;
use crate::copy::Loops;
use crate::element::with_bits;
use crate::simd::vectorized;
use crate::table::tensor;
use crate::tensor::{Strides, Tensor};
use crate::threads::{SharedPtr, Threads};
use crate::uninit::Uninit;

/// Index entries, or elements, that one thread processes at a time.
pub const PART: usize = 1 << 14;

/// Returns an index tensor as contiguous int64, with its lowest and highest entry.
fn with_range(threads: &mut Threads, index: Tensor) -> Result<(Tensor, i64, i64), EngineError> {
    let index = cast::to(threads, index, DType::I64)?.contiguous_with(threads)?;
    let entries = index.as_slice::<i64>();
    let mut ranges = vec![(i64::MAX, i64::MIN); entries.len().div_ceil(PART)];
    threads.for_each_part(&mut ranges, 1, |part, range| {
        let entries = &entries[part * PART..];
        let entries = &entries[..entries.len().min(PART)];
        range[0] = vectorized(
            #[inline(always)]
            || entries.iter().fold(range[0], |(low, high), &at| (low.min(at), high.max(at))),
        );
    });
    let low = ranges.iter().map(|range| range.0).min().unwrap_or(0);
    let high = ranges.iter().map(|range| range.1).max().unwrap_or(-1);
    Ok((index, low, high))
}

/// Returns the error that names the first entry out of range.
fn out_of_range(index: &Tensor, range: Range<i64>) -> EngineError {
    let outside = index.as_slice::<i64>().iter().find(|at| !range.contains(at));
    let index = *outside.expect("an entry is out of range");
    EngineError::IndexOutOfRange { index, length: range.end.max(0) as usize }
}

/// Returns an index tensor as contiguous int64 after checking that all entries are in `0..length`.
///
/// # Errors
/// An entry is out of range.
pub fn index_below(
    threads: &mut Threads,
    index: Tensor,
    length: usize,
) -> Result<Tensor, EngineError> {
    let (index, low, high) = with_range(threads, index)?;
    if low < 0 || high >= length as i64 {
        return Err(out_of_range(&index, 0..length as i64));
    }
    Ok(index)
}

/// Returns the axis that the first attribute names.
///
/// # Errors
/// The axis is out of range.
pub fn axis_of(attributes: &Attributes, shape: &Shape) -> Result<usize, EngineError> {
    axis(int(attributes, 0), shape.rank(), "index")
        .map_err(|error| EngineError::Other(error.to_string()))
}

/// The elements of a tensor that an index selects along an axis, one for each entry.
pub struct IndexedElements<'a> {
    entries: &'a [i64],
    /// Over the entries, with the tensor's strides along the other axes.
    loops: Loops<1>,
    /// The tensor's stride along the axis.
    step: isize,
}

impl<'a> IndexedElements<'a> {
    /// Creates the selection in a tensor of this shape and these strides. All entries are in range.
    ///
    /// # Panics
    /// The index is longer than the tensor along another axis.
    pub fn new(
        index: &'a Tensor,
        shape: &Shape,
        strides: &Strides,
        along: usize,
    ) -> IndexedElements<'a> {
        let mut axes = index.shape().dims().iter().zip(shape.dims()).enumerate();
        let fits = axes.all(|(axis, (entries, length))| axis == along || entries <= length);
        assert!(index.shape().rank() == shape.rank() && fits, "an index beyond its tensor");
        // Without axes there is only one element, whatever the stride.
        let mut others = if shape.rank() == 0 { [0; MAX_RANK] } else { *strides };
        let step = std::mem::take(&mut others[along]);
        let loops = Loops::new(index.shape(), &[others]);
        IndexedElements { entries: index.as_slice::<i64>(), loops, step }
    }

    /// Calls `body` for each entry in a range, with its number and the offset of the element that
    /// it selects.
    #[inline(always)]
    pub fn each(&self, numbers: Range<usize>, mut body: impl FnMut(usize, isize)) {
        if numbers.is_empty() {
            return;
        }
        let (inner, stride) = (self.loops.inner(), self.loops.inner_stride(0));
        let rows = numbers.start / inner..numbers.end.div_ceil(inner);
        self.loops.for_each_row(rows, |row, offsets| {
            let first = row * inner;
            let start = first.max(numbers.start);
            let entries = &self.entries[start..numbers.end.min(first + inner)];
            let mut offset = offsets[0] + (start - first) as isize * stride;
            for (column, &entry) in entries.iter().enumerate() {
                body(start + column, offset + entry as isize * self.step);
                offset += stride;
            }
        });
    }
}

pub fn gather(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let x = tensor(&mut operands, 0)?;
    let index = tensor(&mut operands, 1)?;
    if x.shape().rank() == 0 {
        index_below(threads, index, 1)?;
        return Ok(x);
    }
    let along = axis_of(attributes, x.shape())?;
    let index = index_below(threads, index, x.shape()[along])?;
    let mut out = Uninit::new(output)?;
    assert!(output == Meta::new(x.dtype(), *index.shape()), "a value for each index");
    let elements = IndexedElements::new(&index, x.shape(), &x.strides(), along);
    let (from, to) = (SharedPtr::new(x.read().cast_mut()), SharedPtr::new(out.write()));
    let count = index.numel();
    with_bits!(output.dtype.size(), T => threads.for_each(count.div_ceil(PART), |part| {
        let (from, to) = (from.get().cast::<T>(), to.get().cast::<T>());
        elements.each(part * PART..count.min((part + 1) * PART), |number, offset| {
            // SAFETY: the offsets are those of elements of x, which no thread writes. The numbers
            // are those of elements of the output, which is as large as the index, and each is in
            // one part.
            unsafe { to.add(number).write(*from.offset(offset)) }
        });
    }));
    // SAFETY: the output has an element for each entry of the index, and all have been visited.
    Ok(unsafe { out.finish() })
}

/// Converts negative indices, which count from the end, to non-negative ones.
pub fn wrap_index(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let length = int(attributes, 0);
    let index = tensor(&mut operands, 0)?;
    let (index, low, high) = with_range(threads, index)?;
    if low < -length || high >= length {
        return Err(out_of_range(&index, -length..length));
    }
    if low >= 0 {
        return Ok(index);
    }
    let mut out = Uninit::new(output)?;
    let (slots, entries) = (out.slots::<i64>(), index.as_slice::<i64>());
    assert!(slots.len() == entries.len());
    threads.for_each_part(slots, PART, |part, slots| {
        for (slot, &at) in slots.iter_mut().zip(&entries[part * PART..]) {
            slot.write(if at < 0 { at + length } else { at });
        }
    });
    // SAFETY: every element has been written, as there are as many entries.
    Ok(unsafe { out.finish() })
}
