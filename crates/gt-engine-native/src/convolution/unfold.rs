//! Unfolding: writes the input of each pair of an output and a kernel element to a matrix.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::ConvolutionFloat;
use super::axis::within;
use crate::simd::vectorized;
use crate::threads::SharedPtr;

/// Elements that are copied at a time.
const VECTOR: usize = 16;
/// The least number of elements that rows of an unfolded input have room for beyond their columns.
pub const SLACK: usize = VECTOR - 1;
/// The most elements of a line that is gathered before it is copied, and the number of such lines
/// that are cached.
const LINE: usize = 256;
const LINES: usize = 16;

/// One side of an unfolded input, rows or columns: the outputs of all images, or the kernel
/// elements of all channels.
#[derive(Clone, Copy)]
pub struct MatrixSide {
    /// The distance between images or channels.
    pub outer_step: usize,
    pub lengths: [usize; 3],
    /// The distance in the input for one step along each axis.
    pub steps: [usize; 3],
}

/// Consecutive elements of a side along the innermost axis.
#[derive(Clone, Copy)]
pub struct Segment {
    /// The image or channel.
    pub outer: usize,
    /// The indices along the outer two spatial axes.
    pub index: [usize; 2],
    /// The index of the first element along the innermost axis.
    pub first: usize,
    pub length: usize,
    /// The position of the first element within the requested range.
    pub at: usize,
}

impl MatrixSide {
    /// Returns the segments that make up a range of the side.
    pub fn segments(&self, range: Range<usize>) -> impl Iterator<Item = Segment> {
        let [depth, height, width] = self.lengths;
        let mut at = range.start;
        std::iter::from_fn(move || {
            if at >= range.end {
                return None;
            }
            let (row, first) = (at / width, at % width);
            let (plane, y) = (row / height, row % height);
            let length = (width - first).min(range.end - at);
            let segment = Segment {
                outer: plane / depth,
                index: [plane % depth, y],
                first,
                length,
                at: at - range.start,
            };
            at += length;
            Some(segment)
        })
    }
}

/// The inputs to unfold.
pub struct Unfold<T> {
    pub first: SharedPtr<T>,
    pub lengths: [usize; 3],
    /// The number of zeros before the inputs along each axis.
    pub lows: [isize; 3],
}

/// A cache of gathered input lines with the zeros around them. Rows of the same channel use the
/// same lines.
struct UnfoldedLines<T> {
    values: [[MaybeUninit<T>; LINE]; LINES],
    /// The key of each line: its first input, its first position, and the length of its phases.
    keys: [(*const T, isize, usize); LINES],
}

impl<T: ConvolutionFloat> Unfold<T> {
    /// Writes the rows of a range, `pitch` elements apart, with the columns of the segments in
    /// order. Up to [`SLACK`] elements after the last column may be written, too: `pitch` exceeds
    /// the number of columns by at least that.
    ///
    /// # Safety
    /// Rows and columns are ranges of the sides, whose inputs are readable for all images and
    /// channels. `out` has room for the rows, and no other thread accesses them.
    pub unsafe fn fill(
        &self,
        (side, range): (&MatrixSide, Range<usize>),
        (columns, segments): (&MatrixSide, &[Segment]),
        out: *mut T,
        pitch: usize,
    ) {
        let keys = [(std::ptr::null(), 0, 0); LINES];
        let mut lines = UnfoldedLines { values: [[MaybeUninit::uninit(); LINE]; LINES], keys };
        vectorized(
            #[inline(always)]
            || {
                for rows in side.segments(range) {
                    for column in segments {
                        let (rows, columns) = ((side, &rows), (columns, column));
                        // SAFETY: by the caller's guarantee, for a part of the rows.
                        unsafe { self.fill_part(rows, columns, &mut lines, out, pitch) };
                    }
                }
            },
        );
    }

    /// Writes one segment of columns of one segment of rows.
    ///
    /// # Safety
    /// As for [`Unfold::fill`].
    #[inline(always)]
    unsafe fn fill_part(
        &self,
        (side, rows): (&MatrixSide, &Segment),
        (columns, column): (&MatrixSide, &Segment),
        lines: &mut UnfoldedLines<T>,
        out: *mut T,
        pitch: usize,
    ) {
        let [depth, height, width] = self.lengths;
        let place = |row: usize, column: usize, axis: usize| {
            let moved = row * side.steps[axis] + column * columns.steps[axis];
            moved as isize - self.lows[axis]
        };
        // Negative positions become large `usize`s, which are beyond the lengths, too.
        let z = place(rows.index[0], column.index[0], 0) as usize;
        let y = place(rows.index[1], column.index[1], 1) as usize;
        // SAFETY: by the caller's guarantee, for a part of the rows.
        let out = unsafe { out.add(rows.at * pitch + column.at) };
        // SAFETY: the same part of one row.
        let row = |number: usize| unsafe {
            let to = out.add(number * pitch).cast::<MaybeUninit<T>>();
            std::slice::from_raw_parts_mut(to, column.length)
        };
        if z >= depth || y >= height {
            return (0..rows.length).for_each(|number| zero(row(number)));
        }
        let at = rows.outer * side.outer_step + column.outer * columns.outer_step;
        // SAFETY: a line of the inputs, since z and y are within their lengths.
        let line = unsafe {
            let first = self.first.get().wrapping_add(at + (z * height + y) * width);
            std::slice::from_raw_parts(first.cast_const(), width)
        };
        let (step, row_step) = (columns.steps[2], side.steps[2]);
        let first = place(rows.first, column.first, 2);
        // The line is gathered by phases, so that the inputs of any row are contiguous: phase p has
        // every `step`-th input starting at p.
        let orders = if row_step.is_multiple_of(step) { 1 } else { step };
        let run = column.length + (rows.length - 1).saturating_mul(row_step) / step;
        if rows.length == 1 || run.saturating_mul(orders) > LINE - SLACK {
            for number in 0..rows.length {
                copy_line(line, first + (number * row_step) as isize, step, row(number));
            }
            return;
        }
        let is_there = step == 1 && first >= 0 && first as usize + run + SLACK <= width;
        let from = if is_there {
            line[first as usize..].as_ptr()
        } else {
            let place = (column.outer * height + y) % LINES;
            let values = &mut lines.values[place];
            let key = (line.as_ptr(), first, run);
            if lines.keys[place] != key {
                for (order, to) in values[..run * orders].chunks_exact_mut(run).enumerate() {
                    copy_line(line, first + order as isize, step, to);
                }
                lines.keys[place] = key;
            }
            values.as_ptr().cast()
        };
        for number in 0..rows.length {
            let moved = number * row_step;
            let at = if step == 1 { moved } else { moved % step * run + moved / step };
            // SAFETY: within the line, since `moved / step + column.length` is at most `run`, and
            // at most [`SLACK`] elements are read and written beyond that.
            unsafe {
                let (from, to) = (from.add(at), out.add(number * pitch));
                for start in (0..column.length).step_by(VECTOR) {
                    let from = from.add(start).cast::<[MaybeUninit<T>; VECTOR]>();
                    to.add(start).cast::<[_; VECTOR]>().write_unaligned(from.read_unaligned());
                }
            }
        }
    }
}

/// Copies every `step`-th element of a line, beginning at `start`; positions outside the line are
/// zeros.
#[inline(always)]
pub fn copy_line<T: ConvolutionFloat>(
    line: &[T],
    start: isize,
    step: usize,
    to: &mut [MaybeUninit<T>],
) {
    let inside = within(start, step, to.len(), line.len());
    zero(&mut to[..inside.start]);
    zero(&mut to[inside.end..]);
    if inside.is_empty() {
        return;
    }
    let first = (start + (inside.start * step) as isize) as usize;
    copy_every(&line[first..], step, &mut to[inside]);
}

/// Fills `to` with every `step`-th element of `from`, and returns it as initialized.
#[inline(always)]
pub fn copy_every<'a, T: Copy>(
    from: &[T],
    step: usize,
    to: &'a mut [MaybeUninit<T>],
) -> &'a mut [T] {
    match step {
        1 => copy(from, to),
        2 => every::<T, 2>(from, to),
        _ => {
            assert!(to.is_empty() || (to.len() - 1) * step < from.len());
            from.iter().step_by(step).zip(&mut *to).for_each(|(from, to)| _ = to.write(*from));
        }
    }
    // SAFETY: every element has been written.
    unsafe { &mut *(std::ptr::from_mut(to) as *mut [T]) }
}

/// Copies every `STEP`-th element.
#[inline(always)]
fn every<T: Copy, const STEP: usize>(from: &[T], to: &mut [MaybeUninit<T>]) {
    let from = &from[..(to.len() * STEP).saturating_sub(STEP - 1)];
    for (index, to) in to.iter_mut().enumerate() {
        to.write(from[index * STEP]);
    }
}

/// Copies elements without calling memcpy, which is slow for a few.
#[inline(always)]
fn copy<T: Copy>(from: &[T], to: &mut [MaybeUninit<T>]) {
    let from = &from[..to.len()];
    in_pieces(
        to.len(),
        #[inline(always)]
        |range| to[range.clone()].iter_mut().zip(&from[range]).for_each(|(to, x)| _ = to.write(*x)),
    );
}

/// Sets elements to 0 without calling memset, which is slow for a few.
#[inline(always)]
fn zero<T: ConvolutionFloat>(to: &mut [MaybeUninit<T>]) {
    in_pieces(
        to.len(),
        #[inline(always)]
        |range| to[range].fill(MaybeUninit::new(T::ZERO)),
    );
}

/// Calls `body` with ranges that cover `0..count`. Their lengths are compile-time constants; they
/// may overlap.
#[inline(always)]
fn in_pieces(count: usize, mut body: impl FnMut(Range<usize>)) {
    if count >= VECTOR {
        by_pieces::<VECTOR>(count, body);
    } else if count >= VECTOR / 4 {
        by_pieces::<{ VECTOR / 4 }>(count, body);
    } else {
        for at in 0..VECTOR / 4 - 1 {
            if at < count {
                body(at..at + 1);
            }
        }
    }
}

#[inline(always)]
fn by_pieces<const LENGTH: usize>(count: usize, mut body: impl FnMut(Range<usize>)) {
    for at in (0..count).step_by(LENGTH) {
        let at = at.min(count - LENGTH);
        body(at..at + LENGTH);
    }
}
