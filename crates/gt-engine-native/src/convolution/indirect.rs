//! Convolution without unfolding: each output finds its inputs through a table of offsets, which is
//! the same for all pixels (M. Dukhan, "The Indirect Convolution Algorithm", 2019). Weights are
//! copied into rows of outputs, and inputs, where there are zeros around them, into planes that
//! have those.

use std::ops::Range;
use std::sync::Arc;

use gt_worker::EngineError;

use super::sub_convolution::{SubConvolution, Weights};
use super::tile::{InitialSums, PIXELS, RegisterTile, TileWidth};
use super::unfold::copy_line;
use super::{Convolution, ConvolutionFloat};
use crate::buffer::Buffer;
use crate::simd::vectorized;
use crate::threads::{SharedPtr, Threads};
use crate::transpose::transpose;

/// Fewer outputs than these of a register are left to gemm.
const FEW: usize = 8;
/// Channels are taken together as long as copies of inputs and weights have at most this many bytes.
const COPIES: usize = if cfg!(test) { 1 << 12 } else { 64 << 20 };
/// Rows of weights that stay in the cache while all tiles of a piece meet them.
const DEPTH: usize = 128;
/// Large work is split into this many pieces, if they do not have too few pixels by then.
const PIECES: usize = 16;
/// Pixels of a piece, in tiles.
const TILES: Range<usize> = 4..32;

/// Planes with the zeros around them are at most this many times as large as those without, or have
/// so few elements.
const ZEROS: (usize, usize) = (4, 1 << 10);

/// Whether a part is better computed here than as a product of matrices.
pub fn is_better<T: ConvolutionFloat>(part: &SubConvolution<T>) -> bool {
    let inputs: usize = part.axes.iter().map(|axis| axis.input).product();
    let lengths = PaddedPlanes::lengths(part).into_iter();
    let padded = lengths.fold(1, |product: usize, length| product.saturating_mul(length));
    part.convolution.outputs >= FEW
        && part.taps() * part.pixels() > 1
        && padded <= (ZEROS.0 * inputs).max(ZEROS.1)
}

/// Writes the outputs of a part.
pub fn run<T: ConvolutionFloat>(
    threads: &mut Threads,
    part: &SubConvolution<T>,
) -> Result<(), EngineError> {
    let Convolution { batch, groups, channels, outputs, .. } = *part.convolution;
    let copied =
        groups * (batch * PaddedPlanes::<T>::size(part) + outputs * part.taps()) * size_of::<T>();
    let step = (COPIES / copied).clamp(1, channels);
    let step = channels.div_ceil(channels.div_ceil(step));
    let weights = part.weights(threads, 1, true)?;
    for first in (0..channels).step_by(step) {
        ChannelPass::new(threads, part, &weights, first..channels.min(first + step))?
            .run(threads)?;
    }
    Ok(())
}

/// The inputs of some channels, with the zeros around them.
struct PaddedPlanes<T> {
    first: SharedPtr<T>,
    /// From an image, and from a channel, to the next.
    steps: [usize; 2],
    /// From a plane and a line of the inputs to the next.
    lines: [usize; 2],
    /// What keeps a copy alive.
    _copy: Arc<Buffer>,
}

impl<T: ConvolutionFloat> PaddedPlanes<T> {
    /// How many inputs all outputs of a plane see, from the first to the last, along each axis.
    fn lengths(part: &SubConvolution<T>) -> [usize; 3] {
        part.axes
            .map(|axis| (axis.output - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1)
    }

    /// Elements of a copied plane: an odd number of lines of the cache, or else the planes of many
    /// channels would compete for the same places of it.
    fn size(part: &SubConvolution<T>) -> usize {
        let line = 64 / size_of::<T>();
        let size: usize = Self::lengths(part).iter().product();
        (size.div_ceil(line) | 1) * line
    }

    fn new(
        threads: &mut Threads,
        part: &SubConvolution<T>,
        channels: &Range<usize>,
    ) -> Result<PaddedPlanes<T>, EngineError> {
        let Convolution { batch, groups, channels: all, .. } = *part.convolution;
        let lengths = Self::lengths(part);
        let (size, count) = (Self::size(part), channels.len());
        let steps = [groups * count * size, size];
        let copy = Buffer::new(batch * groups * count * size * size_of::<T>())?;
        let first = SharedPtr::new(copy.data().cast::<T>());
        part.for_each(threads, batch * groups, |number| {
            let (image, group) = (number / groups, number % groups);
            for channel in 0..count {
                let from = image * part.input.steps[0]
                    + (group * all + channels.start + channel) * part.input.steps[1];
                let to = (number * count + channel) * size;
                // SAFETY: a plane of the inputs, and its place in the copy, which no other thread accesses.
                unsafe {
                    let from = part.input.first.get().add(from).cast_const();
                    Self::pad(part, lengths, from, first.get().add(to));
                }
            }
            Ok(())
        })?;
        let lines = [lengths[1] * lengths[2], lengths[2]];
        Ok(PaddedPlanes { first, steps, lines, _copy: copy })
    }

    /// Copies a plane with the zeros around it.
    ///
    /// # Safety
    /// A plane of the inputs can be read, and one of these lengths written, which no other thread accesses.
    unsafe fn pad(part: &SubConvolution<T>, lengths: [usize; 3], from: *const T, to: *mut T) {
        let [low_z, low_y, low_x] = part.axes.map(|axis| axis.low);
        let [depth, height, width] = part.axes.map(|axis| axis.input);
        vectorized(
            #[inline(always)]
            || {
                for (index, (z, y)) in super::pairs(lengths[0], lengths[1]).enumerate() {
                    // Before the inputs these are beyond their length, too.
                    let z = (z as isize - low_z) as usize;
                    let y = (y as isize - low_y) as usize;
                    // SAFETY: a line of the copy, and one of the inputs where it is within them.
                    let (line, to) = unsafe {
                        let line = if z < depth && y < height {
                            let at = (z * height + y) * width;
                            std::slice::from_raw_parts(from.add(at), width)
                        } else {
                            &[]
                        };
                        let to = to.add(index * lengths[2]).cast();
                        (line, std::slice::from_raw_parts_mut(to, lengths[2]))
                    };
                    copy_line(line, -low_x, 1, to);
                }
            },
        );
    }
}

/// The products of some channels, of all groups.
struct ChannelPass<'a, T> {
    part: &'a SubConvolution<'a, T>,
    /// Whether earlier channels have been summed up.
    initial: InitialSums,
    planes: PaddedPlanes<T>,
    width: TileWidth,
    /// For each group and block of outputs, rows of weights.
    weights: (SharedPtr<T>, Arc<Buffer>),
    /// Where inputs are that meet them, one for each row.
    tap_offsets: Vec<usize>,
    /// Pixels of all images that are computed together.
    pixels: usize,
}

impl<'a, T: ConvolutionFloat> ChannelPass<'a, T> {
    fn new(
        threads: &mut Threads,
        part: &'a SubConvolution<'a, T>,
        from: &Weights<T>,
        channels: Range<usize>,
    ) -> Result<ChannelPass<'a, T>, EngineError> {
        let Convolution { batch, groups, outputs, .. } = *part.convolution;
        let width = TileWidth::of::<T>(outputs);
        let planes = PaddedPlanes::new(threads, part, &channels)?;
        let weights = weights(threads, part, from, &channels, width)?;
        let side = part.kernel_side();
        let mut tap_offsets = Vec::with_capacity(channels.len() * part.taps());
        for segment in side.segments(0..channels.len() * part.taps()) {
            let [z, y] = [0, 1].map(|axis| segment.index[axis] * side.steps[axis]);
            let at = segment.outer * planes.steps[1] + z * planes.lines[0] + y * planes.lines[1];
            let along = segment.first..segment.first + segment.length;
            tap_offsets.extend(along.map(|x| at + x * side.steps[2]));
        }
        if from.is_reversed {
            // Rows keep the order that the weights have in memory.
            tap_offsets.chunks_exact_mut(part.taps()).for_each(<[usize]>::reverse);
        }
        let tiles = (batch * part.pixels()).div_ceil(PIXELS);
        let blocks = groups * outputs.div_ceil(width.outputs());
        let pieces = PIECES.div_ceil(blocks);
        let step = tiles.div_ceil(pieces).clamp(TILES.start, TILES.end);
        let pixels = tiles.div_ceil(tiles.div_ceil(step)) * PIXELS;
        let initial = if channels.start == 0 { InitialSums::Zero } else { InitialSums::Existing };
        Ok(ChannelPass { part, initial, planes, width, weights, tap_offsets, pixels })
    }

    fn run(&self, threads: &mut Threads) -> Result<(), EngineError> {
        let Convolution { batch, groups, outputs, .. } = *self.part.convolution;
        let all = batch * self.part.pixels();
        let along = all.div_ceil(self.pixels);
        let blocks = outputs.div_ceil(self.width.outputs());
        self.part.for_each(threads, groups * blocks * along, |number| {
            let (block, first) = (number / along, number % along * self.pixels);
            let pixels = first..all.min(first + self.pixels);
            self.piece(block / blocks, block % blocks, pixels)
        })
    }

    /// Computes some pixels of a block of outputs.
    fn piece(&self, group: usize, block: usize, pixels: Range<usize>) -> Result<(), EngineError> {
        let Convolution { outputs, .. } = *self.part.convolution;
        let row_length = self.width.outputs();
        let pixel_offsets = self.pixel_offsets(group, &pixels);
        let memory = Buffer::new(pixel_offsets.len() * PIXELS * row_length * size_of::<T>())?;
        let sums = memory.data().cast::<T>();
        let number = group * outputs.div_ceil(row_length) + block;
        let weights =
            self.weights.0.get().wrapping_add(number * self.tap_offsets.len() * row_length);
        for (index, tap_offsets) in self.tap_offsets.chunks(DEPTH).enumerate() {
            let weights = weights.wrapping_add(index * DEPTH * row_length).cast_const();
            let initial = if index == 0 { InitialSums::Zero } else { InitialSums::Existing };
            for (tile, pixel_offsets) in pixel_offsets.iter().enumerate() {
                let sums = sums.wrapping_add(tile * PIXELS * row_length);
                let inputs = self.planes.first.get().cast_const();
                // SAFETY: the inputs that an output of the part meets exist, with the zeros
                // around them. The sums are this call's alone; all are written at the first index.
                unsafe {
                    self.width.add(RegisterTile {
                        inputs,
                        pixel_offsets,
                        tap_offsets,
                        weights,
                        sums,
                        initial,
                    });
                }
            }
        }
        let first = block * row_length;
        let count = row_length.min(outputs - first);
        for (at, image, run) in self.runs(pixels) {
            let plane = self.part.plane(image, group, first);
            // SAFETY: outputs of this piece, which no other thread accesses, and their sums.
            unsafe { self.write(sums.add(at * row_length), plane, count, run) };
        }
        Ok(())
    }

    /// Where each pixel's inputs begin; the last one again where a tile has more.
    fn pixel_offsets(&self, group: usize, pixels: &Range<usize>) -> Vec<[usize; PIXELS]> {
        let mut side = self.part.output_side();
        side.outer_step = self.planes.steps[0];
        let channels = self.planes.steps[0] / self.part.convolution.groups;
        let mut pixel_offsets = Vec::with_capacity(pixels.len().div_ceil(PIXELS));
        let mut tile = [0; PIXELS];
        let mut filled = 0;
        for segment in side.segments(pixels.clone()) {
            let [z, y] = [0, 1].map(|axis| segment.index[axis] * side.steps[axis]);
            let at = segment.outer * side.outer_step + group * channels;
            let at = at + z * self.planes.lines[0] + y * self.planes.lines[1];
            for x in segment.first..segment.first + segment.length {
                tile[filled..].fill(at + x * side.steps[2]);
                filled += 1;
                if filled == PIXELS {
                    pixel_offsets.push(tile);
                    filled = 0;
                }
            }
        }
        pixel_offsets.extend((filled > 0).then_some(tile));
        pixel_offsets
    }

    /// Pixels that are at even steps in the output: where they begin in a range, the image, and
    /// their numbers within its plane.
    fn runs(&self, pixels: Range<usize>) -> impl Iterator<Item = (usize, usize, Range<usize>)> {
        let plane = self.part.pixels();
        let line = if self.part.is_whole() { plane } else { self.part.axes[2].output };
        let mut at = pixels.start;
        std::iter::from_fn(move || {
            let (image, first) = (at / plane, at % plane);
            let end = (first + line - first % line).min(first + pixels.end - at);
            let run = (at < pixels.end).then_some((at - pixels.start, image, first..end));
            at += end - first;
            run
        })
    }

    /// Writes the sums of a run to their places, in this many planes of the output.
    ///
    /// # Safety
    /// A row of sums for each pixel can be read. No other thread accesses these outputs.
    unsafe fn write(&self, sums: *const T, plane: usize, count: usize, run: Range<usize>) {
        let [_, height, width] = self.part.axes.map(|axis| axis.output);
        let (x, rest) = (run.start % width, run.start / width);
        let at = self.part.place([rest / height, rest % height, x]);
        let (step, row_length) = (self.part.axes[2].output_subset.step, self.width.outputs());
        let pitch = self.part.out_steps[1];
        // SAFETY: the caller's promise: planes of this piece, from the first of the run on.
        unsafe {
            let to = self.part.out.get().add(plane + at);
            if self.initial == InitialSums::Zero && step == 1 {
                return transpose(count, run.len(), sums, row_length as isize, to, pitch as isize);
            }
            for output in 0..count {
                for index in 0..run.len() {
                    let sum = *sums.add(index * row_length + output);
                    let to = to.add(output * pitch + index * step);
                    *to = if self.initial == InitialSums::Zero { sum } else { *to + sum };
                }
            }
        }
    }
}

/// The weights of some channels: for each group and block of outputs a row of its outputs for each
/// channel and element of the kernel, with zeros where there are fewer outputs.
fn weights<T: ConvolutionFloat>(
    threads: &mut Threads,
    part: &SubConvolution<T>,
    from: &Weights<T>,
    channels: &Range<usize>,
    width: TileWidth,
) -> Result<(SharedPtr<T>, Arc<Buffer>), EngineError> {
    let Convolution { groups, outputs, .. } = *part.convolution;
    let (row_length, taps) = (width.outputs(), part.taps());
    let blocks = outputs.div_ceil(row_length);
    let depth = channels.len() * taps;
    let copy = Buffer::new(groups * blocks * depth * row_length * size_of::<T>())?;
    let to = SharedPtr::new(copy.data().cast::<T>());
    // As many channels at a time as make up a page of rows.
    let step = (DEPTH / taps).max(1);
    let along = channels.len().div_ceil(step);
    part.for_each(threads, groups * blocks * along, |number| {
        let (block, first) = (number / along, number % along * step);
        let output = block % blocks * row_length;
        let count = row_length.min(outputs - output);
        let row = (block / blocks * outputs + output) * from.row;
        let some = first..channels.len().min(first + step);
        // SAFETY: weights of these outputs and channels, and the rows for them, which have room for
        // all outputs of a block and which no other thread accesses.
        unsafe {
            let to = to.get().add((block * depth + first * taps) * row_length);
            if count < row_length {
                to.write_bytes(0, some.len() * taps * row_length);
            }
            // At once where the channels follow one another.
            let (rows, parts) =
                if from.channel == taps { (some.len() * taps, 1) } else { (taps, some.len()) };
            for index in 0..parts {
                let at = row + (channels.start + first + index) * from.channel;
                let from = (from.first.get().add(at).cast_const(), from.row as isize);
                let to = to.add(index * taps * row_length);
                transpose(rows, count, from.0, from.1, to, row_length as isize);
            }
        }
        Ok(())
    })?;
    Ok((to, copy))
}
