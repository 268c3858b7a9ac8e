//! Convolution with a long kernel and few outputs, such as the gradient of a weight with few
//! outputs: planes of inputs are multiplied with kernels element by element and summed.

use std::mem::MaybeUninit;

use gt_worker::EngineError;

use super::grid::{Grid, LANES};
use super::sub_convolution::SubConvolution;
use super::unfold::copy_line;
use super::{Convolution, ConvolutionFloat};
use crate::buffer::Buffer;
use crate::simd::vectorized;
use crate::threads::Threads;

/// Groups with more outputs than this are multiplied as matrices.
pub const OUTPUTS: usize = 3;

/// Writes the outputs of a sub-convolution.
pub fn run<T: ConvolutionFloat>(
    threads: &mut Threads,
    part: &SubConvolution<T>,
    grid: &Grid,
) -> Result<(), EngineError> {
    let Convolution { batch, groups, channels, outputs, .. } = *part.convolution;
    let weights = part.weights(threads, 0, false)?;
    let starts = grid.starts();
    let [depth, height, width] = part.axes.map(|axis| axis.kernel);
    let lines: Vec<usize> =
        (0..depth * height).map(|line| grid.line(line / height, line % height)).collect();
    let padded = width.next_multiple_of(LANES);
    part.for_each(threads, batch * groups, |number| {
        let (image, group) = (number / groups, number % groups);
        let mut plane = grid.plane::<T>()?;
        let memory = Buffer::new(lines.len() * padded * size_of::<T>())?;
        // SAFETY: the memory has room for this many elements, and only this call accesses it.
        let kernel: &mut [MaybeUninit<T>] =
            unsafe { std::slice::from_raw_parts_mut(memory.data().cast(), lines.len() * padded) };
        let mut totals = vec![T::ZERO; outputs * starts.len()];
        for channel in 0..channels {
            let [image_step, channel_step] = part.input.steps;
            let at = image * image_step + (group * channels + channel) * channel_step;
            // SAFETY: the pointer is to a plane of the inputs.
            let inputs = unsafe { grid.fill(part.input.first.get().wrapping_add(at), &mut plane) };
            for (output, totals) in totals.chunks_exact_mut(starts.len()).enumerate() {
                let at = (group * outputs + output) * weights.row + channel * weights.channel;
                // SAFETY: the slice is a kernel of the weights.
                let weights = unsafe {
                    let first = weights.first.get().add(at).cast_const();
                    std::slice::from_raw_parts(first, lines.len() * width)
                };
                for (line, to) in weights.chunks_exact(width).zip(kernel.chunks_exact_mut(padded)) {
                    copy_line(line, 0, 1, to);
                }
                // SAFETY: every line has just been written.
                let kernel = unsafe { &*(std::ptr::from_mut(kernel) as *const [T]) };
                correlate((kernel, padded), width, inputs, &lines, &starts, totals);
            }
        }
        for (output, totals) in totals.chunks_exact(starts.len()).enumerate() {
            let plane = part.plane(image, group, output);
            let [_, height, width] = part.axes.map(|axis| axis.output);
            for (index, total) in totals.iter().enumerate() {
                let (row, x) = (index / width, index % width);
                let at = plane + part.place([row / height, row % height, x]);
                // SAFETY: an output of this group and image, which no other thread accesses.
                unsafe { *part.out.get().add(at) = *total };
            }
        }
        Ok(())
    })
}

/// Adds to each total the products of the kernel with the inputs that begin at its start. Rows of
/// the kernel have `width` elements and are padded to `padded`; `lines` has the offsets of the rows
/// of inputs.
fn correlate<T: ConvolutionFloat>(
    (kernel, padded): (&[T], usize),
    width: usize,
    inputs: &[T],
    lines: &[usize],
    starts: &[usize],
    totals: &mut [T],
) {
    vectorized(
        #[inline(always)]
        || {
            for first in (0..width).step_by(LANES) {
                let count = LANES.min(width - first);
                let (kernel, inputs) = (&kernel[first..], &inputs[first..]);
                let (mut starts, mut totals) = (starts, &mut *totals);
                while let Some((some, rest)) = starts.split_first_chunk::<9>() {
                    add((kernel, padded), inputs, lines, some, count, totals);
                    (starts, totals) = (rest, &mut totals[9..]);
                }
                while let Some((some, rest)) = starts.split_first_chunk::<1>() {
                    add((kernel, padded), inputs, lines, some, count, totals);
                    (starts, totals) = (rest, &mut totals[1..]);
                }
            }
        },
    );
}

/// As [`correlate`], for `N` starts and the first `count` of the `LANES` elements of every row.
#[inline(always)]
fn add<T: ConvolutionFloat, const N: usize>(
    (kernel, padded): (&[T], usize),
    inputs: &[T],
    lines: &[usize],
    starts: &[usize; N],
    count: usize,
    totals: &mut [T],
) {
    let mut sums = [[T::ZERO; LANES]; N];
    for (line, at) in lines.iter().enumerate() {
        let kernel: &[T; LANES] = kernel[line * padded..].first_chunk().expect("padded lines");
        for (sum, start) in sums.iter_mut().zip(starts) {
            let inputs: &[T; LANES] = inputs[at + start..].first_chunk().expect("padded lines");
            for ((sum, input), weight) in sum.iter_mut().zip(inputs).zip(kernel) {
                *sum = *sum + *input * *weight;
            }
        }
    }
    for (total, sums) in totals.iter_mut().zip(&sums) {
        *total = sums[..count].iter().fold(*total, |total, sum| total + *sum);
    }
}
