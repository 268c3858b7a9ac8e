//! Depthwise convolution, where each output sees one channel: planes of outputs are summed
//! directly, with one product with a plane of inputs for each element of the kernel.

use std::mem::MaybeUninit;

use gt_worker::EngineError;

use super::grid::{Grid, pairs};
use super::sub_convolution::SubConvolution;
use super::{Convolution, ConvolutionFloat};
use crate::buffer::Buffer;
use crate::simd::vectorized;
use crate::threads::Threads;

/// Channels with more outputs than this are multiplied as matrices.
pub const OUTPUTS: usize = 7;
/// Outputs that are summed over the whole kernel before the next chunk.
const CHUNK: usize = 2048;
/// Multiplications of one piece of work for a thread.
const PIECE: usize = 1 << 18;

/// Writes the outputs of a sub-convolution whose groups have one channel each.
pub fn run<T: ConvolutionFloat>(
    threads: &mut Threads,
    part: &SubConvolution<T>,
    grid: &Grid,
) -> Result<(), EngineError> {
    let Convolution { batch, groups, outputs, .. } = *part.convolution;
    let weights = part.weights(threads, 0, false)?;
    let (starts, span) = (grid.starts(), grid.span());
    let planes = batch * groups;
    let step = (PIECE / (part.work() / planes).max(1)).clamp(1, planes);
    part.for_each(threads, planes.div_ceil(step), |piece| {
        let mut plane = grid.plane::<T>()?;
        let sums = Buffer::new(span * size_of::<T>())?;
        for number in piece * step..planes.min((piece + 1) * step) {
            let (image, group) = (number / groups, number % groups);
            let at = image * part.input.steps[0] + group * part.input.steps[1];
            // SAFETY: the pointer is to a plane of the inputs.
            let inputs = unsafe { grid.fill(part.input.first.get().wrapping_add(at), &mut plane) };
            for output in 0..outputs {
                let row = (group * outputs + output) * weights.row;
                // SAFETY: the slices are a row of the weights and this call's own memory for the
                // sums.
                let (weights, sums) = unsafe {
                    let weights = std::slice::from_raw_parts(
                        weights.first.get().add(row).cast_const(),
                        starts.len(),
                    );
                    let sums: &mut [MaybeUninit<T>] =
                        std::slice::from_raw_parts_mut(sums.data().cast(), span);
                    sums.fill(MaybeUninit::new(T::ZERO));
                    (weights, &mut *(std::ptr::from_mut(sums) as *mut [T]))
                };
                for (chunk, sums) in sums.chunks_mut(CHUNK).enumerate() {
                    sum(sums, &inputs[chunk * CHUNK..], &starts, weights);
                }
                // SAFETY: no other thread accesses this plane of the outputs.
                unsafe { place(part, grid, sums, part.plane(number / groups, group, output)) };
            }
        }
        Ok(())
    })
}

/// Adds to the sums, for each start, the product of the inputs from that start on with its weight.
fn sum<T: ConvolutionFloat>(sums: &mut [T], inputs: &[T], starts: &[usize], weights: &[T]) {
    vectorized(
        #[inline(always)]
        || {
            let (mut starts, mut weights) = (starts, weights);
            while let Some((first, rest)) = starts.split_first_chunk::<9>() {
                add(sums, inputs, first, weights);
                (starts, weights) = (rest, &weights[9..]);
            }
            while let Some((first, rest)) = starts.split_first_chunk::<3>() {
                add(sums, inputs, first, weights);
                (starts, weights) = (rest, &weights[3..]);
            }
            while let Some((first, rest)) = starts.split_first_chunk::<1>() {
                add(sums, inputs, first, weights);
                (starts, weights) = (rest, &weights[1..]);
            }
        },
    );
}

/// As [`sum`], for the first `N` starts.
#[inline(always)]
fn add<T: ConvolutionFloat, const N: usize>(
    sums: &mut [T],
    inputs: &[T],
    starts: &[usize; N],
    weights: &[T],
) {
    let weights: [T; N] = weights[..N].try_into().expect("N weights");
    let inputs = starts.map(|start| &inputs[start..][..sums.len()]);
    for (index, sum) in sums.iter_mut().enumerate() {
        let mut total = *sum;
        for (inputs, weight) in inputs.iter().zip(&weights) {
            total = total + inputs[index] * *weight;
        }
        *sum = total;
    }
}

/// Copies the outputs among the sums to a plane of the output.
///
/// # Safety
/// No other thread accesses the plane.
unsafe fn place<T: ConvolutionFloat>(
    part: &SubConvolution<T>,
    grid: &Grid,
    sums: &[T],
    plane: usize,
) {
    let [z, y, x] = part.axes;
    for (index_z, index_y) in pairs(z.output, y.output) {
        let sums = &sums[grid.line(index_z, index_y)..][..x.output];
        let at = plane + part.place([index_z, index_y, 0]);
        for (index, sum) in sums.iter().enumerate() {
            // SAFETY: an output of the plane.
            unsafe { *part.out.get().add(at + index * x.output_subset.step) = *sum };
        }
    }
}
