//! A part of a convolution without zeros between the inputs, and the pointers to its data.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gt_worker::EngineError;

use super::axis::WindowAxis;
use super::unfold::{MatrixSide, Unfold};
use super::{Convolution, ConvolutionFloat, PARALLEL};
use crate::buffer::Buffer;
use crate::threads::{SharedPtr, Threads};

/// The first of a tensor's planes and the distances between planes along both axes. All planes are
/// in bounds: [`super::Planes::origin`] has checked them.
#[derive(Clone, Copy)]
pub struct Origin<T> {
    pub first: SharedPtr<T>,
    pub steps: [usize; 2],
    /// Whether a plane's elements are in reverse order.
    pub is_reversed: bool,
}

/// A convolution without zeros between its inputs.
pub struct SubConvolution<'a, T> {
    pub convolution: &'a Convolution,
    /// Each axis has at least one output and one kernel element.
    pub axes: [WindowAxis; 3],
    pub input: Origin<T>,
    pub weight: Origin<T>,
    /// The whole output; this part writes the elements in the axes' output subsets.
    pub out: SharedPtr<T>,
    /// The distances between the output's planes: from image to image, and from channel to channel.
    pub out_steps: [usize; 2],
}

/// The weights of a sub-convolution: a row for each output of all groups.
pub struct Weights<T> {
    pub first: SharedPtr<T>,
    /// The distance between rows.
    pub row: usize,
    /// The distance between channels of a row; the elements of a channel are contiguous.
    pub channel: usize,
    /// Whether the elements of a channel are in reverse order.
    pub is_reversed: bool,
    /// Keeps the copy alive, if the weights are one.
    _copy: Option<Arc<Buffer>>,
}

impl<T: ConvolutionFloat> SubConvolution<'_, T> {
    /// Returns the number of outputs of a plane.
    pub fn pixels(&self) -> usize {
        self.axes.iter().map(|axis| axis.output).product()
    }

    /// Returns the number of elements of the kernel.
    pub fn taps(&self) -> usize {
        self.axes.iter().map(|axis| axis.kernel).product()
    }

    /// Returns the number of multiplications.
    pub fn work(&self) -> usize {
        let Convolution { batch, groups, channels, outputs, .. } = *self.convolution;
        let counts = [batch, groups, channels, outputs, self.pixels(), self.taps()];
        counts.iter().fold(1, |a: usize, b| a.saturating_mul(*b))
    }

    /// Returns whether the outputs are all of the whole convolution's, and so contiguous in a
    /// plane.
    pub fn is_whole(&self) -> bool {
        self.axes.iter().all(|axis| axis.output_subset.is_all())
    }

    /// Returns the offset of a plane of the output.
    pub fn plane(&self, image: usize, group: usize, output: usize) -> usize {
        let [image_step, step] = self.out_steps;
        image * image_step + (group * self.convolution.outputs + output) * step
    }

    /// Returns the offset of an output in its plane.
    pub fn place(&self, index: [usize; 3]) -> usize {
        let [z, y, x] = [0, 1, 2].map(|axis| {
            let output_subset = self.axes[axis].output_subset;
            output_subset.first + index[axis] * output_subset.step
        });
        (z * self.axes[1].output_subset.of + y) * self.axes[2].output_subset.of + x
    }

    /// Returns the outputs as a side of an unfolded input.
    pub fn output_side(&self) -> MatrixSide {
        MatrixSide {
            outer_step: self.input.steps[0],
            lengths: self.axes.map(|axis| axis.output),
            steps: self.axes.map(|axis| axis.stride),
        }
    }

    /// Returns a group's channels and kernel elements as a side of an unfolded input.
    pub fn kernel_side(&self) -> MatrixSide {
        MatrixSide {
            outer_step: self.input.steps[1],
            lengths: self.axes.map(|axis| axis.kernel),
            steps: self.axes.map(|axis| axis.dilation),
        }
    }

    /// Returns the inputs of a group, for unfolding.
    pub fn unfold(&self, group: usize) -> Unfold<T> {
        let first = group * self.convolution.channels * self.input.steps[1];
        Unfold {
            first: SharedPtr::new(self.input.first.get().wrapping_add(first)),
            lengths: self.axes.map(|axis| axis.input),
            lows: self.axes.map(|axis| axis.low),
        }
    }

    /// Calls `piece` with each number below `pieces`, on several threads if the work is large
    /// enough.
    ///
    /// # Errors
    /// The first error of a call; the remaining calls may be skipped.
    pub fn for_each(
        &self,
        threads: &mut Threads,
        pieces: usize,
        piece: impl Fn(usize) -> Result<(), EngineError> + Sync,
    ) -> Result<(), EngineError> {
        if self.work() < PARALLEL {
            return (0..pieces).try_for_each(piece);
        }
        let failed = AtomicBool::new(false);
        let error = std::sync::OnceLock::new();
        threads.for_each(pieces, |number| {
            if !failed.load(Ordering::Relaxed)
                && let Err(failure) = piece(number)
            {
                failed.store(true, Ordering::Relaxed);
                let _ = error.set(failure);
            }
        });
        error.into_inner().map_or(Ok(()), Err)
    }

    /// Returns the weights in rows, copied unless they already are. Channels of at least `whole`
    /// elements need not be adjacent; the elements may be reversed if `may_be_reversed`.
    pub fn weights(
        &self,
        threads: &mut Threads,
        whole: usize,
        may_be_reversed: bool,
    ) -> Result<Weights<T>, EngineError> {
        let Convolution { groups, channels, outputs, .. } = *self.convolution;
        let taps = self.taps();
        let [row, channel] = self.weight.steps;
        let are_together = channel == taps || channels == 1 || taps >= whole;
        let is_reversed = self.weight.is_reversed;
        let is_ordered = may_be_reversed || !is_reversed;
        if are_together && is_ordered && self.axes.iter().all(|axis| axis.kernel_subset.is_all()) {
            let first = self.weight.first;
            return Ok(Weights { first, row, channel, is_reversed, _copy: None });
        }
        let length = channels * taps;
        let copy = Buffer::new(groups * outputs * length * size_of::<T>())?;
        let to = SharedPtr::new(copy.data().cast::<T>());
        self.for_each(threads, groups * outputs, |output| {
            // SAFETY: a row of the copy, which has one for each output. No other thread accesses
            // it.
            let mut to: &mut [MaybeUninit<T>] = unsafe {
                std::slice::from_raw_parts_mut(to.get().add(output * length).cast(), length)
            };
            for index in 0..channels {
                let (part, rest) = to.split_at_mut(taps);
                self.copy_kernel(output * row + index * channel, part);
                to = rest;
            }
            Ok(())
        })?;
        let copy = Some(copy);
        Ok(Weights { first: to, row: length, channel: taps, is_reversed: false, _copy: copy })
    }

    /// Copies the kernel elements of this sub-convolution from the plane of the weights at
    /// `offset`.
    fn copy_kernel(&self, offset: usize, to: &mut [MaybeUninit<T>]) {
        let [z, y, x] = self.axes.map(|axis| axis.kernel_subset);
        let widths = self.axes.map(|axis| axis.kernel);
        let last = x.of * y.of * z.of - 1;
        for (row, to) in to.chunks_exact_mut(widths[2]).enumerate() {
            let (index_z, index_y) = (row / widths[1], row % widths[1]);
            let at = ((z.first + index_z * z.step) * y.of + y.first + index_y * y.step) * x.of;
            for (index, to) in to.iter_mut().enumerate() {
                let at = at + x.first + index * x.step;
                let at = if self.weight.is_reversed { last - at } else { at };
                // SAFETY: an element of a plane of the weights, all of which are in bounds.
                to.write(unsafe { *self.weight.first.get().add(offset + at) });
            }
        }
    }
}

/// A product of matrices, each described by a pointer to its first element and its row and column
/// strides.
pub struct MatrixProduct<T> {
    pub rows: usize,
    pub depth: usize,
    pub columns: usize,
    /// rows x depth: the first element, and the distances between rows and columns.
    pub a: (*const T, [usize; 2]),
    /// depth x columns.
    pub b: (*const T, [usize; 2]),
    /// rows x columns.
    pub out: (*mut T, [usize; 2]),
    /// Whether the product is added to the existing values.
    pub adds: bool,
}

impl<T: ConvolutionFloat> MatrixProduct<T> {
    /// Computes the product on this thread.
    ///
    /// # Safety
    /// `a` and `b` are readable at these lengths, and `out` is writable; no other thread accesses
    /// it. With `adds`, `out` is initialized.
    pub unsafe fn run(self) {
        let MatrixProduct { rows, depth, columns, a, b, out, adds } = self;
        let steps = |steps: [usize; 2]| steps.map(|step| step as isize);
        let ([a_row, a_column], [b_row, b_column]) = (steps(a.1), steps(b.1));
        let [out_row, out_column] = steps(out.1);
        let (start, parallelism) = (if adds { T::ONE } else { T::ZERO }, gemm::Parallelism::None);
        // SAFETY: by the caller's guarantee; T is float32 or float64. gemm reads the output only if
        // `adds`.
        unsafe {
            gemm::gemm(
                rows,
                columns,
                depth,
                out.0,
                out_column,
                out_row,
                adds,
                a.0,
                a_column,
                a_row,
                b.0,
                b_column,
                b_row,
                start,
                T::ONE,
                false,
                false,
                false,
                parallelism,
            );
        }
    }
}
