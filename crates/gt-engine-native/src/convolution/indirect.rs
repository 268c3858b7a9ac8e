//! Convolution without unfolding: each output finds its inputs through a table of offsets, which is
//! the same for all pixels (M. Dukhan, "The Indirect Convolution Algorithm", 2019). Weights are
//! copied into rows of outputs, and inputs into planes that include the zeros around them.

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

/// Convolutions with fewer outputs than this are left to gemm.
const FEW: usize = 8;
/// Channels are processed together as long as the copies of inputs and weights have at most this
/// many bytes.
const COPIES: usize = if cfg!(test) { 1 << 12 } else { 64 << 20 };
/// Rows of weights that stay in the cache while all tiles of a piece are multiplied by them.
const DEPTH: usize = 128;
/// Large work is split into this many pieces, unless they would have too few pixels.
const PIECES: usize = 16;
/// Pixels of a piece, in tiles.
const TILES: Range<usize> = 4..32;

/// This algorithm is used only if planes with the zeros around them are at most `ZEROS.0` times as
/// large as those without, or have at most `ZEROS.1` elements.
const ZEROS: (usize, usize) = (4, 1 << 10);

/// Returns whether this algorithm is faster than a product of matrices.
pub fn is_better<T: ConvolutionFloat>(part: &SubConvolution<T>) -> bool {
    let inputs: usize = part.axes.iter().map(|axis| axis.input).product();
    let lengths = PaddedPlanes::lengths(part).into_iter();
    let padded = lengths.fold(1, |product: usize, length| product.saturating_mul(length));
    part.convolution.outputs >= FEW
        && part.taps() * part.pixels() > 1
        && padded <= (ZEROS.0 * inputs).max(ZEROS.1)
}

/// Writes the outputs of a sub-convolution.
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

/// A copy of the inputs of a range of channels, with the zeros around them.
struct PaddedPlanes<T> {
    first: SharedPtr<T>,
    /// The distances between images and between channels.
    steps: [usize; 2],
    /// The distances between the 2-d slices and between the lines of a plane.
    lines: [usize; 2],
    /// Keeps the copy alive.
    _copy: Arc<Buffer>,
}

impl<T: ConvolutionFloat> PaddedPlanes<T> {
    /// Returns the number of inputs that the outputs of a plane span along each axis.
    fn lengths(part: &SubConvolution<T>) -> [usize; 3] {
        part.axes
            .map(|axis| (axis.output - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1)
    }

    /// Returns the elements of a copied plane: an odd number of cache lines, since otherwise the
    /// planes of many channels would compete for the same cache sets.
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
                // SAFETY: a plane of the inputs, and its slot in the copy, which no other thread
                // accesses.
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
    /// `from` points to a readable plane of the inputs, and `to` to a writable one of these
    /// lengths, which no other thread accesses.
    unsafe fn pad(part: &SubConvolution<T>, lengths: [usize; 3], from: *const T, to: *mut T) {
        let [low_z, low_y, low_x] = part.axes.map(|axis| axis.low);
        let [depth, height, width] = part.axes.map(|axis| axis.input);
        vectorized(
            #[inline(always)]
            || {
                for (index, (z, y)) in super::pairs(lengths[0], lengths[1]).enumerate() {
                    // Negative positions become large `usize`s, which are beyond the lengths, too.
                    let z = (z as isize - low_z) as usize;
                    let y = (y as isize - low_y) as usize;
                    // SAFETY: a line of the copy, and a line of the inputs if it is within them.
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

/// The products of a range of channels, for all groups.
struct ChannelPass<'a, T> {
    part: &'a SubConvolution<'a, T>,
    /// Whether the output already has the sums of earlier channels.
    initial: InitialSums,
    planes: PaddedPlanes<T>,
    width: TileWidth,
    /// Rows of weights for each group and block of outputs.
    weights: (SharedPtr<T>, Arc<Buffer>),
    /// The offset of the input that each row of weights is multiplied with.
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
            // Rows are in the order of the weights in memory.
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

    /// Computes a range of pixels for a block of outputs.
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
                // SAFETY: the inputs of every output are in the padded planes. Only this call
                // accesses the sums; all are written at the first index.
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
            // SAFETY: the outputs of this piece, which no other thread accesses, and their sums.
            unsafe { self.write(sums.add(at * row_length), plane, count, run) };
        }
        Ok(())
    }

    /// Returns the offset of each pixel's inputs, in tiles; the last pixel is repeated to fill the
    /// last tile.
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

    /// Splits a range of pixels into runs whose outputs are at even distances. Yields each run's
    /// offset in the range, its image, and its pixels within the image's plane.
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

    /// Writes the sums of a run to `count` planes of the output.
    ///
    /// # Safety
    /// `sums` points to a readable row of sums for each pixel. No other thread accesses these
    /// outputs.
    unsafe fn write(&self, sums: *const T, plane: usize, count: usize, run: Range<usize>) {
        let [_, height, width] = self.part.axes.map(|axis| axis.output);
        let (x, rest) = (run.start % width, run.start / width);
        let at = self.part.place([rest / height, rest % height, x]);
        let (step, row_length) = (self.part.axes[2].output_subset.step, self.width.outputs());
        let pitch = self.part.out_steps[1];
        // SAFETY: by the caller's guarantee: the planes of this piece, from the first pixel of the
        // run on.
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

/// Copies the weights of a range of channels: for each group and block of outputs, one row of the
/// block's outputs for each channel and kernel element. Blocks with fewer outputs are padded with
/// zeros.
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
    // As many channels at a time as make up `DEPTH` rows.
    let step = (DEPTH / taps).max(1);
    let along = channels.len().div_ceil(step);
    part.for_each(threads, groups * blocks * along, |number| {
        let (block, first) = (number / along, number % along * step);
        let output = block % blocks * row_length;
        let count = row_length.min(outputs - output);
        let row = (block / blocks * outputs + output) * from.row;
        let some = first..channels.len().min(first + step);
        // SAFETY: the weights of these outputs and channels, and the rows for them, which have room
        // for all outputs of a block and which no other thread accesses.
        unsafe {
            let to = to.get().add((block * depth + first * taps) * row_length);
            if count < row_length {
                to.write_bytes(0, some.len() * taps * row_length);
            }
            // One transposition if the channels are contiguous, else one for each channel.
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
