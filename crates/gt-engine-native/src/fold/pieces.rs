//! Folding a tensor that does not lie in memory as it is folded: its memory holds fewer elements than
//! it has, as an expanded one's does, or they are of another dtype. A piece at a time is written out,
//! so that the whole need never be there.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::{COLUMNS, Fold, PIECE, fold_piece, merge_columns, piece_rows};
use crate::cast;
use crate::copy::Loops;
use crate::element::{Element, Number, with_element};
use crate::tensor::Tensor;
use crate::threads::Threads;

/// Elements of a tensor in row-major order, wherever they are in memory and whatever their dtype.
pub struct Elements<'a> {
    tensor: &'a Tensor,
    loops: Loops<1>,
}

impl Elements<'_> {
    pub fn new(tensor: &Tensor) -> Elements<'_> {
        Elements { tensor, loops: Loops::new(tensor.shape(), &[tensor.strides()]) }
    }

    /// Appends the elements of a range, cast.
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
            // SAFETY: rows and columns are those of the tensor's shape, so that its strides lead to
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

/// Appends elements that follow one another.
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
    // SAFETY: the kernel reads `count` elements of the dtype and writes as many of T, for which there
    // is room; the two do not overlap, as the vector's memory is its own.
    unsafe {
        cast::kernel(dtype, T::DTYPE).run(&[from; 3], out, count);
        to.set_len(to.len() + count);
    }
}

/// Appends elements at a stride.
///
/// # Safety
/// `count` elements can be read at the stride from `from` on, or where that is 0, one.
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

/// Folds a tensor of the form outer x reduced x inner in the order of [`super::row`] and
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
    // Wide slices are cut, and short ones share a piece of work.
    let step = match out.len() == inner {
        true => COLUMNS,
        false => (PIECE / (reduced * inner).max(1)).max(1) * inner,
    };
    threads.for_each_part(out, step, |part, out| {
        let (mut at, mut values) = (part * step, Vec::new());
        // A part has whole slices, or columns of one.
        for out in out.chunks_mut(inner).flat_map(|slice| slice.chunks_mut(COLUMNS)) {
            let mut totals = vec![F::START_TOTAL; out.len()];
            let mut piece = totals.clone();
            for rows in slices.pieces() {
                slices.fold::<T, F>((at / inner, at % inner), rows, &mut values, &mut piece);
                merge_columns::<T, F>(&mut totals, &piece);
            }
            slices.finish::<T, F>(&totals, out);
            at += out.len();
        }
    });
}

/// A tensor of the form outer x reduced x inner.
struct Slices<'a> {
    elements: Elements<'a>,
    reduced: usize,
    inner: usize,
}

impl Slices<'_> {
    /// The rows of a slice, in pieces.
    fn pieces(&self) -> impl Iterator<Item = Range<usize>> {
        let (rows, reduced) = (self.piece(), self.reduced);
        (0..reduced).step_by(rows).map(move |first| first..reduced.min(first + rows))
    }

    /// How many rows are a piece.
    fn piece(&self) -> usize {
        if self.inner == 1 { PIECE } else { piece_rows(self.inner) }
    }

    /// Folds the only slice, which is not wide, over threads.
    fn fold_one<T: Number, F: Fold<T>>(&self, threads: &mut Threads, out: &mut [MaybeUninit<T>]) {
        let pieces: Vec<Range<usize>> = self.pieces().collect();
        let mut parts = vec![F::START_TOTAL; pieces.len() * self.inner];
        threads.for_each_part(&mut parts, self.inner, |piece, totals| {
            self.fold::<T, F>((0, 0), pieces[piece].clone(), &mut Vec::new(), totals);
        });
        let mut totals = vec![F::START_TOTAL; self.inner];
        for part in parts.chunks(self.inner) {
            merge_columns::<T, F>(&mut totals, part);
        }
        self.finish::<T, F>(&totals, out);
    }

    /// Folds a piece of some columns of a slice.
    fn fold<T: Number, F: Fold<T>>(
        &self,
        (slice, column): (usize, usize),
        rows: Range<usize>,
        values: &mut Vec<T>,
        totals: &mut [F::Total],
    ) {
        let (start, count) = (slice * self.reduced * self.inner, rows.len());
        values.clear();
        if totals.len() == self.inner {
            let range = start + rows.start * self.inner..start + rows.end * self.inner;
            self.elements.read(range, values);
        } else {
            for row in rows {
                let from = start + row * self.inner + column;
                self.elements.read(from..from + totals.len(), values);
            }
        }
        fold_piece::<T, F>(values, count, totals);
    }

    fn finish<T: Number, F: Fold<T>>(&self, totals: &[F::Total], out: &mut [MaybeUninit<T>]) {
        for (out, total) in out.iter_mut().zip(totals) {
            out.write(F::finish(*total, self.reduced));
        }
    }
}
