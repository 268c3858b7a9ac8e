//! Convolution with few outputs compared with inputs, as in the gradient of images: each input is
//! multiplied by all weights, and each product is added to its output (col2im).

use std::mem::MaybeUninit;
use std::ops::Range;

use gt_worker::EngineError;

use super::axis::within;
use super::grid::pairs;
use super::sub_convolution::{MatrixProduct, SubConvolution};
use super::{Convolution, ConvolutionFloat};
use crate::buffer::Buffer;
use crate::simd::vectorized;
use crate::threads::{SharedPtr, Threads};

/// Bytes of a block of products, which fits in the cache of one core, and of its outputs.
const BLOCK: usize = 1 << 19;
/// The most products of an input that are computed together.
const ROWS: usize = 512;
/// The fewest inputs that are multiplied together.
const COLUMNS: usize = 64;
/// Large work is split into this many pieces, unless they would repeat too many products.
const PIECES: usize = 16;
/// The cost of adding up a product, or of unfolding an input, in multiplications.
const STEP: usize = 48;

/// Returns whether this algorithm is faster than unfolding the inputs.
pub fn is_better<T: ConvolutionFloat>(part: &SubConvolution<T>) -> bool {
    let Convolution { channels, outputs, .. } = *part.convolution;
    let inputs: usize = part.axes.iter().map(|axis| axis.input).product();
    let products = outputs.saturating_mul(inputs);
    let unfolded = channels.saturating_mul(part.pixels());
    part.taps() > 1
        && part.axes.iter().all(|axis| axis.stride == 1)
        && products.saturating_mul(channels + STEP) < unfolded.saturating_mul(outputs + STEP)
}

/// The sizes of the pieces that a sub-convolution is split into.
struct PieceSizes {
    /// Outputs of a group that are computed together.
    outputs: usize,
    /// The axis along which a plane of outputs is split.
    axis: usize,
    /// The length of a piece along the axis.
    length: usize,
}

impl PieceSizes {
    fn new<T: ConvolutionFloat>(part: &SubConvolution<T>) -> PieceSizes {
        let Convolution { batch, groups, outputs, .. } = *part.convolution;
        let size = BLOCK / size_of::<T>();
        let most = (ROWS / part.taps()).min(size / part.pixels()).max(1);
        let outputs_step = outputs.div_ceil(outputs.div_ceil(most));
        let axis = usize::from(part.axes[0].output == 1);
        let cut = part.axes[axis];
        let repeated = (cut.kernel - 1) * cut.dilation;
        let jobs = batch * groups * outputs.div_ceil(outputs_step);
        let pieces = (PIECES / jobs).min(cut.output / (4 * repeated + 4)).max(1);
        PieceSizes { outputs: outputs_step, axis, length: cut.output.div_ceil(pieces) }
    }
}

/// Writes the outputs of a sub-convolution.
pub fn run<T: ConvolutionFloat>(
    threads: &mut Threads,
    part: &SubConvolution<T>,
) -> Result<(), EngineError> {
    let Convolution { batch, groups, channels, outputs, .. } = *part.convolution;
    let weights = part.weights(threads, 0, false)?;
    let taps = part.taps();
    // The weights with a row of all channels for each output and kernel element.
    let transposed = Buffer::new(groups * outputs * taps * channels * size_of::<T>())?;
    let rows = SharedPtr::new(transposed.data().cast::<T>());
    part.for_each(threads, groups * outputs, |output| {
        for (tap, channel) in pairs(taps, channels) {
            // SAFETY: a weight of this output, and its slot in the copy, which no other thread
            // accesses.
            unsafe {
                let from = weights.first.get().add(output * weights.row);
                let to = rows.get().add((output * taps + tap) * channels + channel);
                *to = *from.add(channel * weights.channel + tap);
            }
        }
        Ok(())
    })?;
    let pieces = PieceSizes::new(part);
    let along = part.axes[pieces.axis].output.div_ceil(pieces.length);
    let down = outputs.div_ceil(pieces.outputs);
    part.for_each(threads, batch * groups * down * along, |number| {
        let (rest, first) = (number / along, number % along * pieces.length);
        let (rest, output) = (rest / down, rest % down * pieces.outputs);
        let end = part.axes[pieces.axis].output.min(first + pieces.length);
        let mut ranges = part.axes.map(|axis| 0..axis.output);
        ranges[pieces.axis] = first..end;
        let count = pieces.outputs.min(outputs - output);
        let (image, group) = (rest / groups, rest % groups);
        ScatterPiece { part, rows, image, group, outputs: output..output + count, ranges }.run()
    })
}

/// A piece: a range of outputs of a group and image, and its ranges along the axes.
struct ScatterPiece<'a, T> {
    part: &'a SubConvolution<'a, T>,
    rows: SharedPtr<T>,
    image: usize,
    group: usize,
    outputs: Range<usize>,
    ranges: [Range<usize>; 3],
}

impl<T: ConvolutionFloat> ScatterPiece<'_, T> {
    fn run(&self) -> Result<(), EngineError> {
        let part = self.part;
        let Convolution { channels, outputs, .. } = *part.convolution;
        let [depth, height, width] = [0, 1, 2].map(|axis| self.inputs(axis));
        let line = part.axes[2].input;
        let rows = self.outputs.len() * part.taps();
        let most = (BLOCK / size_of::<T>() / rows).max(COLUMNS).div_ceil(line.max(1));
        let step = most.min(height.len()).max(1);
        let plane: usize = self.ranges.iter().map(ExactSizeIterator::len).product();
        let sums = Buffer::new(self.outputs.len() * plane * size_of::<T>())?;
        let products = Buffer::new(rows * step * line * size_of::<T>())?;
        let products = products.data().cast::<T>();
        // SAFETY: the memory has room for this many elements, only this piece accesses it, and it
        // is filled with zeros.
        let sums = unsafe {
            let count = self.outputs.len() * plane;
            let sums: &mut [MaybeUninit<T>] =
                std::slice::from_raw_parts_mut(sums.data().cast(), count);
            sums.fill(MaybeUninit::new(T::ZERO));
            &mut *(std::ptr::from_mut(sums) as *mut [T])
        };
        let [image_step, channel_step] = part.input.steps;
        let inputs = self.image * image_step + self.group * channels * channel_step;
        let row = (self.group * outputs + self.outputs.start) * part.taps() * channels;
        for z in depth {
            for y in height.clone().step_by(step) {
                let count = step.min(height.end - y);
                let columns = count * line;
                if width.is_empty() {
                    continue;
                }
                let at = inputs + (z * part.axes[1].input + y) * line;
                // SAFETY: lines of the inputs of all channels, and rows of the weights. The memory
                // for the products has room for them, and only this piece accesses it.
                let products = unsafe {
                    let a = (self.rows.get().add(row).cast_const(), [channels, 1]);
                    let b = (part.input.first.get().add(at).cast_const(), [channel_step, 1]);
                    let out = (products, [columns, 1]);
                    MatrixProduct { rows, depth: channels, columns, a, b, out, adds: false }.run();
                    std::slice::from_raw_parts(products, rows * columns)
                };
                vectorized(
                    #[inline(always)]
                    || self.add(products, z, y..y + count, sums),
                );
            }
        }
        let [_, _, along] = self.ranges.clone().map(|range| range.len());
        let mut lines = sums.chunks_exact(along);
        for output in self.outputs.clone() {
            let plane = part.plane(self.image, self.group, output);
            for z in self.ranges[0].clone() {
                for (y, sums) in self.ranges[1].clone().zip(&mut lines) {
                    let at = plane + part.place([z, y, 0]);
                    for (index, sum) in sums.iter().enumerate() {
                        let at = at + index * part.axes[2].output_subset.step;
                        // SAFETY: an output of this piece, which no other thread accesses.
                        unsafe { *part.out.get().add(at) = *sum };
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the inputs along an axis that any of the piece's outputs sees.
    fn inputs(&self, axis: usize) -> Range<usize> {
        let (range, axis) = (&self.ranges[axis], self.part.axes[axis]);
        let first = range.start as isize - axis.low;
        let end = range.end as isize - axis.low + ((axis.kernel - 1) * axis.dilation) as isize;
        let inside = |at: isize| at.clamp(0, axis.input as isize) as usize;
        inside(first)..inside(end)
    }

    /// Adds the products of a range of input lines with all outputs and kernel elements to their
    /// outputs.
    #[inline(always)]
    fn add(&self, products: &[T], z: usize, lines: Range<usize>, sums: &mut [T]) {
        let [axis_z, axis_y, axis_x] = self.part.axes;
        let [depth, height, width] = self.ranges.clone().map(|range| range.len());
        // The offset from an input's index to the index, within the piece, of the output that its
        // product with a tap is added to.
        let place = |axis: usize, tap: usize| {
            let (low, dilation) = (self.part.axes[axis].low, self.part.axes[axis].dilation);
            low - (tap * dilation) as isize - self.ranges[axis].start as isize
        };
        let line = axis_x.input;
        let mut products = products.chunks_exact(line);
        for output in 0..self.outputs.len() {
            for (tap_z, tap_y) in pairs(axis_z.kernel, axis_y.kernel) {
                let to_z = z.wrapping_add_signed(place(0, tap_z));
                for tap_x in 0..axis_x.kernel {
                    let start = place(2, tap_x);
                    let inside = within(start, 1, line, width);
                    for (y, products) in lines.clone().zip(&mut products) {
                        let to_y = y.wrapping_add_signed(place(1, tap_y));
                        if to_z >= depth || to_y >= height || inside.is_empty() {
                            continue;
                        }
                        let products = &products[inside.clone()];
                        let to = ((output * depth + to_z) * height + to_y) * width;
                        let to = to + (start + inside.start as isize) as usize;
                        let sums = &mut sums[to..][..products.len()];
                        for (sum, product) in sums.iter_mut().zip(products) {
                            *sum = *sum + *product;
                        }
                    }
                }
            }
        }
    }
}
