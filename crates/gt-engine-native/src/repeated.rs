//! Folding a tensor whose memory holds fewer elements than it has, as an expanded one's does: a piece
//! at a time is written out, so that the whole need never be there.

use std::mem::MaybeUninit;
use std::ops::Range;

use crate::copy::Loops;
use crate::element::Number;
use crate::fold::{self, Fold};
use crate::tensor::Tensor;
use crate::threads::Threads;

/// Elements of a tensor in row-major order, wherever they are in memory.
struct Elements<'a, T> {
    tensor: &'a Tensor,
    loops: Loops<1>,
    kind: std::marker::PhantomData<T>,
}

impl<T: Number> Elements<'_, T> {
    fn new(tensor: &Tensor) -> Elements<'_, T> {
        assert!(tensor.dtype() == T::DTYPE);
        let loops = Loops::new(tensor.shape(), &[tensor.strides()]);
        Elements { tensor, loops, kind: std::marker::PhantomData }
    }

    /// Appends the elements of a range.
    fn read(&self, range: Range<usize>, to: &mut Vec<T>) {
        assert!(range.end <= self.tensor.numel());
        let (inner, stride) = (self.loops.inner(), self.loops.inner_stride(0));
        let from = self.tensor.read().cast::<T>();
        let rows = range.start / inner..range.end.div_ceil(inner);
        self.loops.for_each_row(rows, |row, offsets| {
            let first = row * inner;
            let columns = range.start.max(first) - first..range.end.min(first + inner) - first;
            if stride == 0 {
                // SAFETY: the offset is that of an element of the tensor.
                let value = unsafe { *from.offset(offsets[0]) };
                return to.extend(columns.map(|_| value));
            }
            to.extend(columns.map(|column| {
                // SAFETY: offset and stride lead to elements of the tensor: the rows are those of its
                // shape, and the columns are below their length.
                unsafe { *from.offset(offsets[0] + column as isize * stride) }
            }));
        });
    }
}

/// Folds a tensor of the form outer x reduced x inner in the order of [`fold::row`] and
/// [`fold::columns`]; writes every element of the output.
pub fn fold<T: Number, F: Fold<T>>(
    threads: &mut Threads,
    tensor: &Tensor,
    out: &mut [MaybeUninit<T>],
    [reduced, inner]: [usize; 2],
) {
    let elements = Elements::<T>::new(tensor);
    let elements = &Shared(&elements);
    let rows = if inner == 1 { fold::PIECE } else { fold::piece_rows(inner) };
    // Short slices share a piece of work.
    let step = (fold::PIECE / (reduced * inner).max(1)).max(1);
    threads.for_each_part(out, step * inner, |piece, out| {
        let mut values = Vec::new();
        for (index, out) in out.chunks_exact_mut(inner).enumerate() {
            let start = (piece * step + index) * reduced * inner;
            for (strip, out) in out.chunks_mut(fold::COLUMNS).enumerate() {
                let start = start + strip * fold::COLUMNS;
                let mut totals = vec![F::START_TOTAL; out.len()];
                for first in (0..reduced).step_by(rows) {
                    let count = rows.min(reduced - first);
                    values.clear();
                    if out.len() == inner {
                        let from = start + first * inner;
                        elements.0.read(from..from + count * inner, &mut values);
                    } else {
                        for row in first..first + count {
                            let from = start + row * inner;
                            elements.0.read(from..from + out.len(), &mut values);
                        }
                    }
                    fold::add_piece::<T, F>(&values, count, &mut totals);
                }
                for (out, total) in out.iter_mut().zip(totals) {
                    out.write(F::finish(total, reduced));
                }
            }
        }
    });
}

/// Elements that several threads read.
struct Shared<'a, T>(&'a Elements<'a, T>);

// SAFETY: the tensor's memory is only read while it is borrowed, and nobody writes it.
unsafe impl<T> Sync for Shared<'_, T> {}
