//! Convolution with a long kernel: for each piece of the kernel, the inputs are unfolded, one row
//! for each output of a plane, and multiplied by the weights; then the products of all pieces are
//! summed.

use gt_worker::EngineError;

use super::sub_convolution::{MatrixProduct, SubConvolution, Weights};
use super::unfold::{SLACK, Segment};
use super::{Convolution, ConvolutionFloat};
use crate::buffer::Buffer;
use crate::simd::vectorized;
use crate::threads::{SharedPtr, Threads};

/// Bytes of a block, which fits in the cache of one core.
const BLOCK: usize = 1 << 19;
/// Kernel elements of a block: rounded to whole rows of the kernel, unless a row is more than twice
/// as long.
const DEPTH: usize = 256;
/// Kernels of at least this many elements are long enough to be multiplied channel by channel.
const WHOLE: usize = 256;
/// Large work is split into this many pieces, unless they would be too short.
const PIECES: usize = 16;

/// The sizes of a sub-convolution's blocks.
struct LongKernelBlocks {
    /// Outputs of one plane, over all images.
    columns: usize,
    /// Columns of a block.
    column_step: usize,
    /// All channels times all kernel elements.
    depth: usize,
    /// Elements of the depth that are multiplied together.
    depth_step: usize,
    /// No block crosses a multiple of this.
    depth_end: usize,
    /// Elements of the depth that one piece sums.
    piece: usize,
    /// Whether the inputs are already the unfolded matrix.
    in_place: bool,
}

impl LongKernelBlocks {
    fn new<T: ConvolutionFloat>(
        part: &SubConvolution<T>,
        weights: &Weights<T>,
    ) -> LongKernelBlocks {
        let Convolution { batch, groups, channels, .. } = *part.convolution;
        let (columns, taps) = (batch * part.pixels(), part.taps());
        let in_place = part.axes[..2].iter().all(|axis| axis.input == 1 && axis.kernel == 1)
            && part.pixels() == 1
            && part.axes[2].kernel == part.axes[2].input
            && part.axes[2].low == 0
            && part.axes[2].dilation == 1;
        let depth = channels * taps;
        let weights_go_on = channels == 1 || weights.channel == taps;
        let inputs_go_on = !in_place || channels == 1 || part.input.steps[1] == taps;
        let depth_end = if weights_go_on && inputs_go_on { depth } else { taps };
        let width = part.axes[2].kernel;
        let depth_step = if width > 2 * DEPTH { DEPTH } else { width * (DEPTH / width).max(1) };
        let block = BLOCK / size_of::<T>();
        let most = (block / depth_step).clamp(16, 1024);
        let column_step = columns.div_ceil(columns.div_ceil(most));
        let jobs = groups * columns.div_ceil(column_step);
        let pieces = (PIECES / jobs).min(depth / (4 * depth_step)).max(1);
        let piece = depth.div_ceil(pieces).next_multiple_of(depth_step);
        LongKernelBlocks { columns, column_step, depth, depth_step, depth_end, piece, in_place }
    }
}

/// Writes the outputs of a sub-convolution.
pub fn run<T: ConvolutionFloat>(
    threads: &mut Threads,
    part: &SubConvolution<T>,
) -> Result<(), EngineError> {
    let Convolution { groups, outputs, .. } = *part.convolution;
    let weights = part.weights(threads, WHOLE, false)?;
    let blocks = LongKernelBlocks::new(part, &weights);
    let pieces = blocks.depth.div_ceil(blocks.piece);
    let along = blocks.columns.div_ceil(blocks.column_step);
    // Laid out as (pieces, groups, columns, outputs).
    let sums = Buffer::new(pieces * groups * blocks.columns * outputs * size_of::<T>())?;
    let sums = (SharedPtr::new(sums.data().cast::<T>()), sums);
    part.for_each(threads, pieces * groups * along, |number| {
        let (rest, column) = (number / along, number % along * blocks.column_step);
        let (piece, group) = (rest / groups, rest % groups);
        // SAFETY: only this call accesses the sums of this piece, group and columns.
        unsafe { multiply(part, &blocks, &weights, [piece, group, column], sums.0.get()) }
    })?;
    let step = blocks.column_step.div_ceil(4);
    let along = blocks.columns.div_ceil(step);
    part.for_each(threads, groups * along, |number| {
        let (group, column) = (number / along, number % along * step);
        // SAFETY: all sums have been written; no other thread accesses the sums of this group and
        // columns, or their outputs.
        unsafe { add_up(part, &blocks, pieces, group, column, step, sums.0.get()) };
        Ok(())
    })
}

/// Multiplies one piece of the kernel with the inputs of some columns.
///
/// # Safety
/// `sums` has room for the sums of all pieces; no other thread accesses the sums of this piece,
/// group and columns.
unsafe fn multiply<T: ConvolutionFloat>(
    part: &SubConvolution<T>,
    blocks: &LongKernelBlocks,
    weights: &Weights<T>,
    [piece, group, column]: [usize; 3],
    sums: *mut T,
) -> Result<(), EngineError> {
    let Convolution { groups, outputs, .. } = *part.convolution;
    let columns = blocks.column_step.min(blocks.columns - column);
    let pitch = blocks.depth_step + SLACK;
    let room = if blocks.in_place { 0 } else { columns * pitch };
    let buffer = Buffer::new(room * size_of::<T>())?;
    let matrix = buffer.data().cast::<T>();
    let unfold = part.unfold(group);
    let (output_side, kernel_side) = (part.output_side(), part.kernel_side());
    let taps = part.taps();
    let (first, end) = (piece * blocks.piece, blocks.depth.min((piece + 1) * blocks.piece));
    let mut start = first;
    while start < end {
        let next = (start / blocks.depth_end + 1) * blocks.depth_end;
        let depth = blocks.depth_step.min(end - start).min(next - start);
        let (channel, tap) = (start / taps, start % taps);
        // SAFETY: the ranges are within the sides of this sub-convolution, whose inputs and weights
        // are in bounds. Only this call accesses the buffer, which has room for the matrix; the
        // caller guarantees the sums.
        unsafe {
            let b = if blocks.in_place {
                let [image, step] = part.input.steps;
                let first = unfold.first.get().cast_const();
                (first.add(column * image + channel * step + tap), [1, image])
            } else {
                let segments: Vec<Segment> = kernel_side.segments(start..start + depth).collect();
                let rows = (&output_side, column..column + columns);
                unfold.fill(rows, (&kernel_side, &segments), matrix, pitch);
                (matrix.cast_const(), [1, pitch])
            };
            let row = group * outputs * weights.row + channel * weights.channel + tap;
            let a = (weights.first.get().cast_const().add(row), [weights.row, 1]);
            let at = (piece * groups + group) * blocks.columns + column;
            let out = (sums.add(at * outputs), [1, outputs]);
            MatrixProduct { rows: outputs, depth, columns, a, b, out, adds: start > first }.run();
        }
        start += depth;
    }
    Ok(())
}

/// Adds up the pieces' sums of at most `step` columns, and writes them to the output.
///
/// # Safety
/// `sums` has the sums of `pieces` pieces. No other thread accesses the sums of this group and
/// columns, or their outputs.
unsafe fn add_up<T: ConvolutionFloat>(
    part: &SubConvolution<T>,
    blocks: &LongKernelBlocks,
    pieces: usize,
    group: usize,
    column: usize,
    step: usize,
    sums: *mut T,
) {
    let Convolution { groups, outputs, .. } = *part.convolution;
    let columns = step.min(blocks.columns - column);
    let count = columns * outputs;
    let of = |piece: usize| ((piece * groups + group) * blocks.columns + column) * outputs;
    // SAFETY: by the caller's guarantee; the sums of different pieces do not overlap.
    let total = unsafe { std::slice::from_raw_parts_mut(sums.add(of(0)), count) };
    for piece in 1..pieces {
        // SAFETY: as above.
        let more = unsafe { std::slice::from_raw_parts(sums.add(of(piece)), count) };
        vectorized(
            #[inline(always)]
            || total.iter_mut().zip(more).for_each(|(total, more)| *total = *total + *more),
        );
    }
    let placed_step = part.axes[2].output_subset.step;
    for segment in part.output_side().segments(column..column + columns) {
        let [z, y] = segment.index;
        let at = part.place([z, y, segment.first]);
        let plane = part.plane(segment.outer, group, 0);
        let sums = &total[segment.at * outputs..][..segment.length * outputs];
        for output in 0..outputs {
            for index in 0..segment.length {
                let to = plane + output * part.out_steps[1] + at + index * placed_step;
                // SAFETY: an output of these columns, which is within the whole output.
                unsafe { *part.out.get().add(to) = sums[index * outputs + output] };
            }
        }
    }
}
