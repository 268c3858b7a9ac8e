//! Folding a tensor whose memory does not have the elements as they are folded: because it is
//! expanded, or of another dtype. It is written out one piece at a time, so that the whole tensor
//! never needs memory.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::{COLUMNS, Fold, PIECE, merge_columns, piece, piece_of_columns, piece_rows};
use crate::cast;
use crate::copy::Loops;
use crate::element::{Element, Number, with_element};
use crate::tensor::Tensor;
use crate::threads::Threads;

/// Pieces of one slice that are folded before they are merged.
const PIECES: usize = 1024;

/// The elements of a tensor in row-major order, whatever its strides and dtype.
pub struct Elements<'a> {
    tensor: &'a Tensor,
    loops: Loops<1>,
}

impl Elements<'_> {
    pub fn new(tensor: &Tensor) -> Elements<'_> {
        Elements { tensor, loops: Loops::new(tensor.shape(), &[tensor.strides()]) }
    }

    /// Appends the elements of a range, cast to T.
    pub fn read<T: Element>(&self, range: Range<usize>, to: &mut Vec<T>) {
        assert!(range.end <= self.tensor.numel());
        if range.is_empty() {
            return;
        }
        to.reserve(range.len());
        let (inner, stride) = (self.loops.inner(), self.loops.inner_stride(0));
        let (dtype, start) = (self.tensor.dtype(), self.tensor.read());
        let rows = range.start / inner..range.end.div_ceil(inner);
        self.loops.for_each_row(rows, |row, offsets| {
            let first = row * inner;
            let columns = range.start.max(first) - first..range.end.min(first + inner) - first;
            let at = offsets[0] + columns.start as isize * stride;
            // SAFETY: rows and columns are those of the tensor's shape, so its strides lead to
            // elements of it, of its dtype.
            unsafe {
                let from = start.offset(at * dtype.size() as isize);
                match stride {
                    1 => append_run(from, dtype, columns.len(), to),
                    _ => with_element!(dtype, U => {
                        append::<U, T>(from.cast(), stride, columns.len(), to);
                    }),
                }
            }
        });
    }
}

/// Appends contiguous elements.
///
/// # Safety
/// `count` elements of the dtype can be read at `from`.
unsafe fn append_run<T: Element>(
    from: *const u8,
    dtype: gt_ir::DType,
    count: usize,
    to: &mut Vec<T>,
) {
    to.reserve(count);
    let out = to.spare_capacity_mut().as_mut_ptr().cast();
    // SAFETY: the kernel reads `count` elements of the dtype and writes as many of T, for which
    // there is space; the two do not overlap, as the vector owns its memory.
    unsafe {
        cast::kernel(dtype, T::DTYPE).run(&[from; 3], out, count);
        to.set_len(to.len() + count);
    }
}

/// Appends elements at a stride.
///
/// # Safety
/// `count` elements can be read at the stride from `from` on, or one if the stride is 0.
unsafe fn append<U: Element, T: Element>(
    from: *const U,
    stride: isize,
    count: usize,
    to: &mut Vec<T>,
) {
    // SAFETY: the caller's promise, here and below.
    let read = |index: usize| unsafe { (*from.offset(index as isize * stride)).cast::<T>() };
    match stride {
        0 => to.resize(to.len() + count, read(0)),
        _ => to.extend((0..count).map(read)),
    }
}

/// Folds a tensor viewed as outer x reduced x inner, in the order of [`super::row`] and
/// [`super::columns`]; writes every element of the output.
pub fn fold<T: Number, F: Fold<T>>(
    threads: &mut Threads,
    tensor: &Tensor,
    out: &mut [MaybeUninit<T>],
    [reduced, inner]: [usize; 2],
) {
    let slices = &Slices { elements: Elements::new(tensor), reduced, inner };
    if out.len() == inner && inner <= COLUMNS {
        return slices.fold_one::<T, F>(threads, out);
    }
    let slice = reduced * inner;
    if slice <= PIECE {
        // Several short slices are one piece of work.
        let step = PIECE / slice.max(1) * inner;
        return threads.for_each_part(out, step, |part, out| {
            let start = part * step * reduced;
            let mut values = Vec::new();
            slices.elements.read(start..start + out.len() * reduced, &mut values);
            fold_slices::<T, F>(&values, out, reduced, inner);
        });
    }
    // Wide slices are split by columns.
    let step = if out.len() == inner { COLUMNS } else { inner };
    threads.for_each_part(out, step, |part, out| {
        let (first, mut values) = (part * step, Vec::new());
        for (index, out) in out.chunks_mut(COLUMNS).enumerate() {
            let at = first + index * COLUMNS;
            let mut totals = vec![F::START_TOTAL; out.len()];
            let mut piece = totals.clone();
            for rows in (0..reduced).step_by(slices.piece()) {
                slices.fold::<T, F>((at / inner, at % inner), rows, &mut values, &mut piece);
                merge_columns::<T, F>(&mut totals, &piece);
            }
            slices.finish::<T, F>(&totals, out);
        }
    });
}

/// Folds each slice of contiguous elements; writes every element of the output.
pub fn fold_slices<T: Number, F: Fold<T>>(
    values: &[T],
    out: &mut [MaybeUninit<T>],
    reduced: usize,
    inner: usize,
) {
    assert!(values.len() == out.len() * reduced);
    if reduced == 0 {
        let nothing = MaybeUninit::new(F::finish(F::START_TOTAL, 0));
        out.fill(nothing);
    } else if inner == 1 {
        for (out, row) in out.iter_mut().zip(values.chunks_exact(reduced)) {
            out.write(F::finish(super::row::<T, F>(row), reduced));
        }
    } else if inner > 0 {
        let slices = values.chunks_exact(reduced * inner);
        for (out, slice) in out.chunks_exact_mut(inner).zip(slices) {
            super::columns::<T, F>(slice, reduced, out);
        }
    }
}

/// A tensor viewed as outer x reduced x inner.
struct Slices<'a> {
    elements: Elements<'a>,
    reduced: usize,
    inner: usize,
}

impl Slices<'_> {
    /// Returns the number of rows in a piece.
    fn piece(&self) -> usize {
        if self.inner == 1 { PIECE } else { piece_rows(self.inner) }
    }

    /// Folds the only slice, which is narrow, on several threads, [`PIECES`] pieces at a time.
    fn fold_one<T: Number, F: Fold<T>>(&self, threads: &mut Threads, out: &mut [MaybeUninit<T>]) {
        let mut totals = vec![F::START_TOTAL; self.inner];
        let pieces = |first: usize| (self.reduced - first).div_ceil(self.piece()).min(PIECES);
        let mut parts = vec![F::START_TOTAL; pieces(0) * self.inner];
        for first in (0..self.reduced).step_by(PIECES * self.piece()) {
            let pieces = pieces(first);
            let parts = &mut parts[..pieces * self.inner];
            threads.for_each_part(parts, self.inner, |piece, totals| {
                let row = first + piece * self.piece();
                self.fold::<T, F>((0, 0), row, &mut Vec::new(), totals);
            });
            for part in parts.chunks(self.inner) {
                merge_columns::<T, F>(&mut totals, part);
            }
        }
        self.finish::<T, F>(&totals, out);
    }

    /// Folds the piece that starts at a row, for some columns of a slice.
    fn fold<T: Number, F: Fold<T>>(
        &self,
        (slice, column): (usize, usize),
        row: usize,
        values: &mut Vec<T>,
        totals: &mut [F::Total],
    ) {
        let rows = self.piece().min(self.reduced - row);
        let start = (slice * self.reduced + row) * self.inner + column;
        values.clear();
        if totals.len() == self.inner {
            self.elements.read(start..start + rows * self.inner, values);
        } else {
            for from in (start..).step_by(self.inner).take(rows) {
                self.elements.read(from..from + totals.len(), values);
            }
        }
        match self.inner {
            1 => totals[0] = piece::<T, F>(values),
            _ => {
                totals.fill(F::START_TOTAL);
                piece_of_columns::<T, F>(values, totals.len(), rows, totals);
            }
        }
    }

    fn finish<T: Number, F: Fold<T>>(&self, totals: &[F::Total], out: &mut [MaybeUninit<T>]) {
        for (out, total) in out.iter_mut().zip(totals) {
            out.write(F::finish(*total, self.reduced));
        }
    }
}
