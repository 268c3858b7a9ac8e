//! Copies between tensors of different strides, and loops over several tensors at once.

use gt_ir::Shape;
use gt_ir::shape::MAX_RANK;
use gt_worker::EngineError;

use crate::element::with_bits;
use crate::tensor::{Strides, Tensor, contiguous_strides};
use crate::threads::{SharedPtr, Threads};
use crate::transpose::{BLOCK, transpose};
use crate::uninit::{Region, Uninit};

/// The loops over one shape in which `K` tensors are iterated together. Axes of length 1 are
/// dropped, and adjacent axes that every tensor can traverse with one stride are merged. The last
/// axis is the inner loop.
#[derive(Clone, Copy, Debug)]
pub struct Loops<const K: usize> {
    rank: usize,
    dims: [usize; MAX_RANK],
    strides: [Strides; K],
}

impl<const K: usize> Loops<K> {
    /// Builds the loops over `shape` for tensors with these strides.
    pub fn new(shape: &Shape, strides: &[Strides; K]) -> Loops<K> {
        let mut loops = Loops { rank: 0, dims: [1; MAX_RANK], strides: [[0; MAX_RANK]; K] };
        for (axis, &length) in shape.dims().iter().enumerate() {
            if length == 1 {
                continue;
            }
            let last = loops.rank.wrapping_sub(1);
            let merges = loops.rank > 0
                && (0..K).all(|k| loops.strides[k][last] == strides[k][axis] * length as isize);
            let at = if merges { last } else { loops.rank };
            loops.dims[at] = if merges { loops.dims[last] * length } else { length };
            for (kept, given) in loops.strides.iter_mut().zip(strides) {
                kept[at] = given[axis];
            }
            loops.rank = at + 1;
        }
        loops
    }

    /// Returns the length of the inner loop.
    pub fn inner(&self) -> usize {
        if self.rank == 0 { 1 } else { self.dims[self.rank - 1] }
    }

    /// Returns the stride of tensor `k` in the inner loop.
    pub fn inner_stride(&self, k: usize) -> isize {
        if self.rank == 0 { 1 } else { self.strides[k][self.rank - 1] }
    }

    /// Returns whether tensor `k` is a single element, broadcast to the shape.
    pub fn is_constant(&self, k: usize) -> bool {
        self.strides[k][..self.rank].iter().all(|&stride| stride == 0)
    }

    /// Returns whether tensor `k` is contiguous along the second-last axis instead of the last, so
    /// that its rows are best read in tiles.
    pub fn is_transposed(&self, k: usize) -> bool {
        self.rank >= 2
            && self.inner_stride(k).unsigned_abs() > 1
            && self.strides[k][self.rank - 2] == 1
            && self.inner() >= BLOCK
            && self.dims[self.rank - 2] >= BLOCK
    }

    /// Moves an axis along which the first tensor is contiguous next to the inner loop, unless it
    /// is contiguous there: the two axes are best copied in tiles.
    fn move_unit_stride_next_to_inner(&mut self) {
        if self.rank < 3 || self.inner_stride(0).unsigned_abs() <= 1 {
            return;
        }
        let before = self.rank - 2;
        let run = (0..self.rank - 1).rev().find(|&axis| self.strides[0][axis] == 1);
        if let Some(run) = run.filter(|&run| run != before && self.dims[run] >= BLOCK) {
            self.dims.swap(run, before);
            self.strides.iter_mut().for_each(|strides| strides.swap(run, before));
        }
    }

    /// Returns the number of iterations of the outer loops.
    pub fn rows(&self) -> usize {
        self.dims[..self.rank.max(1) - 1].iter().product()
    }

    /// Calls `body` for each of `rows`, with the row's number and the offset of each tensor in
    /// elements.
    #[inline]
    pub fn for_each_row(
        &self,
        rows: std::ops::Range<usize>,
        mut body: impl FnMut(usize, &[isize; K]),
    ) {
        let outer = self.rank.max(1) - 1;
        let (mut at, mut offsets) = ([0usize; MAX_RANK], [0isize; K]);
        let mut rest = rows.start;
        for axis in (0..outer).rev() {
            at[axis] = rest % self.dims[axis];
            rest /= self.dims[axis];
            for (k, offset) in offsets.iter_mut().enumerate() {
                *offset += at[axis] as isize * self.strides[k][axis];
            }
        }
        for row in rows {
            body(row, &offsets);
            for axis in (0..outer).rev() {
                at[axis] += 1;
                for (k, offset) in offsets.iter_mut().enumerate() {
                    *offset += self.strides[k][axis];
                }
                if at[axis] < self.dims[axis] {
                    break;
                }
                at[axis] = 0;
                for (k, offset) in offsets.iter_mut().enumerate() {
                    *offset -= self.dims[axis] as isize * self.strides[k][axis];
                }
            }
        }
    }
}

/// Copies of fewer elements stay on one thread.
const PARALLEL: usize = 1 << 16;

/// Returns a contiguous copy of a tensor.
pub fn of(from: &Tensor) -> Result<Tensor, EngineError> {
    let mut out = Uninit::new(from.meta())?;
    into(from, &mut out.whole());
    // SAFETY: the copy has written every element.
    Ok(unsafe { out.finish() })
}

/// Returns a contiguous copy as [`of`] does, in parallel if the tensor is large.
pub fn of_with(threads: &mut Threads, from: &Tensor) -> Result<Tensor, EngineError> {
    let count = threads.ways();
    if from.numel() < PARALLEL || count == 1 {
        return of(from);
    }
    let mut loops = Loops::new(from.shape(), &[from.strides(), contiguous_strides(from.shape())]);
    loops.move_unit_stride_next_to_inner();
    // The first axis that is long enough for all threads is split; all others stay whole.
    let Some(axis) = (0..loops.rank).find(|&axis| loops.dims[axis] >= count) else {
        return of(from);
    };
    let mut out = Uninit::new(from.meta())?;
    let size = from.dtype().size();
    let (source, target) = (SharedPtr::new(from.read().cast_mut()), SharedPtr::new(out.write()));
    let length = loops.dims[axis];
    let step = length.div_ceil(4 * count).next_multiple_of(if length > 64 { 16 } else { 1 });
    threads.for_each(length.div_ceil(step), |piece| {
        let start = piece * step;
        let mut part = loops;
        part.dims[axis] = step.min(length - start);
        let at = |stride: isize| start as isize * stride * size as isize;
        // SAFETY: the loops go over the elements of both tensors, and a part of them over those
        // whose index along the axis is in the part's range. As the target is contiguous, no two
        // parts write the same element. It is new memory, so the source does not overlap with it.
        unsafe {
            let from = source.get().offset(at(loops.strides[0][axis]));
            run(&part, from, target.get().offset(at(loops.strides[1][axis])), size);
        }
    });
    // SAFETY: the parts together cover all elements.
    Ok(unsafe { out.finish() })
}

/// Copies a tensor's values into a region of the same shape and dtype.
pub fn into(from: &Tensor, to: &mut Region) {
    assert!(from.meta() == to.meta(), "a copy into another shape or dtype");
    if from.numel() == 0 {
        return;
    }
    let mut loops = Loops::new(from.shape(), &[from.strides(), *to.strides()]);
    loops.move_unit_stride_next_to_inner();
    let (source, target) = (from.read(), to.write());
    // SAFETY: both have the shape of the loops, and their own strides. The region is borrowed
    // exclusively, so the tensor does not overlap with it.
    unsafe { run(&loops, source, target, from.dtype().size()) }
}

/// Copies elements of `size` bytes, along the strides of the loops.
///
/// # Safety
/// Every element that the loops reach can be read at `from` and written at `to`, is aligned for its
/// size, and the two memories do not overlap.
unsafe fn run(loops: &Loops<2>, from: *const u8, to: *mut u8, size: usize) {
    let (length, source, target) = (loops.inner(), loops.inner_stride(0), loops.inner_stride(1));
    if is_read_by_columns(loops) {
        // SAFETY: the caller's promise; the source is read by columns.
        return with_bits!(size, T => unsafe { transpose_matrices::<T>(loops, from.cast(), to.cast()) });
    }
    let unit = size as isize;
    // The last two axes are iterated here, as rows may be short.
    let (rows, steps) = match loops.rank {
        0 | 1 => (1, [0, 0]),
        rank => (loops.dims[rank - 2], [0, 1].map(|k| loops.strides[k][rank - 2] * unit)),
    };
    let outer = Loops { rank: loops.rank.max(1) - 1, ..*loops };
    outer.for_each_row(0..outer.rows(), |_, offsets| {
        for row in 0..rows as isize {
            // SAFETY: `for_each_row` passes the offset of the first element of these rows, which
            // the caller's loops reach; they do not overlap, as the caller promises.
            unsafe {
                let from = from.offset(offsets[0] * unit + row * steps[0]);
                let to = to.offset(offsets[1] * unit + row * steps[1]);
                if source == 1 && target == 1 {
                    copy_bytes(from, to, length * size);
                } else {
                    with_bits!(size, T => {
                        crate::copy::row::<T>(from.cast(), source, to.cast(), target, length)
                    });
                }
            }
        }
    });
}

/// Runs up to this many bytes are copied without a call to memcpy.
const SHORT: usize = 256;

/// Copies contiguous bytes, 16 at a time if they are few.
///
/// # Safety
/// `length` bytes can be read at `from` and written at `to`, and do not overlap.
#[inline(always)]
pub unsafe fn copy_bytes(from: *const u8, to: *mut u8, length: usize) {
    if length > SHORT {
        // SAFETY: the caller's promise.
        return unsafe { std::ptr::copy_nonoverlapping(from, to, length) };
    }
    let mut at = 0;
    // SAFETY: the caller's promise; `at` stays below the length.
    unsafe {
        while at + 16 <= length {
            let part = from.add(at).cast::<[u8; 16]>().read_unaligned();
            to.add(at).cast::<[u8; 16]>().write_unaligned(part);
            at += 16;
        }
        while at < length {
            *to.add(at) = *from.add(at);
            at += 1;
        }
    }
}

/// # Safety
/// `length` elements at the strides can be read at `from` and written at `to`.
unsafe fn row<T: Copy>(from: *const T, source: isize, to: *mut T, target: isize, length: usize) {
    for i in 0..length as isize {
        // SAFETY: the caller's promise; i is below the length.
        unsafe { *to.offset(i * target) = *from.offset(i * source) }
    }
}

/// Returns whether the source is read down its columns. It is then copied in tiles, so that each
/// cache line is read once.
fn is_read_by_columns(loops: &Loops<2>) -> bool {
    loops.inner_stride(1) == 1 && loops.is_transposed(0)
}

/// # Safety
/// As for [`run`]; [`is_read_by_columns`] holds for the loops.
unsafe fn transpose_matrices<T: Copy>(loops: &Loops<2>, from: *const T, to: *mut T) {
    let (rows, columns) = (loops.dims[loops.rank - 2], loops.inner());
    let (source, target) = (loops.inner_stride(0), loops.strides[1][loops.rank - 2]);
    let outer = Loops { rank: loops.rank - 1, ..*loops };
    outer.for_each_row(0..outer.rows(), |_, offsets| {
        // SAFETY: `for_each_row` passes the offset of a matrix of the last two axes, which the
        // caller's loops reach; the source has stride 1 along its columns and the target along its
        // rows.
        unsafe {
            transpose(
                rows,
                columns,
                from.offset(offsets[0]),
                source,
                to.offset(offsets[1]),
                target,
            );
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use gt_ir::{DType, Meta};

    #[test]
    fn loops_merge_contiguous_axes() {
        let shape = Shape::new(&[2, 3, 1, 4]).unwrap();
        let plain: Strides = [12, 4, 4, 1, 0, 0, 0, 0];
        let loops = Loops::new(&shape, &[plain]);
        assert_eq!((loops.rank, loops.inner(), loops.rows()), (1, 24, 1));
        let transposed: Strides = [1, 2, 0, 6, 0, 0, 0, 0];
        let loops = Loops::new(&shape, &[plain, transposed]);
        assert_eq!((loops.rank, loops.inner(), loops.rows()), (3, 4, 6));
    }

    #[test]
    fn transposed_tensors_are_copied_correctly() {
        let shape = Shape::new(&[3, 20, 33]).unwrap();
        let mut out = Uninit::new(Meta::new(DType::I32, shape)).unwrap();
        for (i, slot) in out.slots::<i32>().iter_mut().enumerate() {
            slot.write(i as i32);
        }
        // SAFETY: every slot has been written.
        let x = unsafe { out.finish() };
        let transposed = x.permute(&[0, 2, 1]).contiguous().unwrap();
        let (from, to) = (x.as_slice::<i32>(), transposed.as_slice::<i32>());
        for (b, i, j) in
            (0..3).flat_map(|b| (0..20).flat_map(move |i| (0..33).map(move |j| (b, i, j))))
        {
            assert_eq!(to[b * 660 + j * 20 + i], from[b * 660 + i * 33 + j]);
        }
    }
}
