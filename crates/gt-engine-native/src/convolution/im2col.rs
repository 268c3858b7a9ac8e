//! Convolution by unfolding (im2col): for each block of outputs, the inputs are unfolded, one row
//! for each channel and kernel element, and multiplied by the weights.

use gt_worker::EngineError;

use super::blocks::{BlockSizes, UnfoldMode, VECTOR};
use super::sub_convolution::{MatrixProduct, SubConvolution, Weights};
use super::unfold::Segment;
use super::{Convolution, ConvolutionFloat};
use crate::buffer::Buffer;
use crate::threads::{SharedPtr, Threads};

/// Writes the outputs of a sub-convolution.
pub fn run<T: ConvolutionFloat>(
    threads: &mut Threads,
    part: &SubConvolution<T>,
) -> Result<(), EngineError> {
    let weights = part.weights(threads, usize::MAX, false)?;
    let blocks = BlockSizes::new(part);
    let groups = part.convolution.groups;
    let (along, down, deep) = (blocks.column_blocks(), blocks.row_blocks(), blocks.depth_blocks());
    let columns = |number: usize| {
        let (rest, column) = (number / along, number % along * blocks.column_step);
        BlockColumns::new(part, &blocks, rest / groups, rest % groups, column)
    };
    let count = blocks.images * groups * along;
    let size = blocks.depth * blocks.pitch;
    let shared = if blocks.unfold_mode == UnfoldMode::Upfront { count * size } else { 0 };
    let shared = Buffer::new(shared * size_of::<T>())?;
    let matrix = SharedPtr::new(shared.data().cast::<T>());
    if blocks.unfold_mode == UnfoldMode::Upfront {
        part.for_each(threads, count * deep, |number| {
            let (number, start) = (number / deep, number % deep * blocks.depth_step);
            let at = number * size + start * blocks.pitch;
            // SAFETY: the memory has room for the whole depth of `count` blocks; only this call
            // accesses this range of this block's depth.
            unsafe { columns(number).unfold(start, matrix.get().add(at)) };
            Ok(())
        })?;
    }
    part.for_each(threads, count * down, |number| {
        let (number, row) = (number / down, number % down * blocks.row_step);
        let matrix = matrix.get().wrapping_add(number * size);
        // SAFETY: if all columns have been unfolded upfront, this block's begin at `matrix`. No
        // other thread accesses these rows and columns of the output.
        unsafe { columns(number).multiply(&weights, row, matrix) }
    })
}

/// A block of columns: outputs of a plane, of one image or of all images.
struct BlockColumns<'a, T> {
    part: &'a SubConvolution<'a, T>,
    blocks: &'a BlockSizes,
    image: usize,
    group: usize,
    first: usize,
    count: usize,
    segments: Vec<Segment>,
}

impl<'a, T: ConvolutionFloat> BlockColumns<'a, T> {
    fn new(
        part: &'a SubConvolution<'a, T>,
        blocks: &'a BlockSizes,
        image: usize,
        group: usize,
        first: usize,
    ) -> BlockColumns<'a, T> {
        let count = blocks.column_step.min(blocks.columns - first);
        let start = image * part.pixels() + first;
        let segments = part.output_side().segments(start..start + count).collect();
        BlockColumns { part, blocks, image, group, first, count, segments }
    }

    /// Returns the number of columns to multiply: rounded up to whole vectors if the rows of the
    /// input matrix and the output have padding.
    fn width(&self) -> usize {
        if self.blocks.has_own_output && self.blocks.unfold_mode != UnfoldMode::InPlace {
            self.count.next_multiple_of(VECTOR)
        } else {
            self.count
        }
    }

    /// Unfolds the inputs of one block of the depth.
    ///
    /// # Safety
    /// `to` has room for the block's rows, which no other thread accesses.
    unsafe fn unfold(&self, start: usize, to: *mut T) {
        let (part, pitch) = (self.part, self.blocks.pitch);
        let depth = self.blocks.depth_step.min(self.blocks.depth - start);
        let (output_side, kernel_side) = (part.output_side(), part.kernel_side());
        let rows = (&kernel_side, start..start + depth);
        // SAFETY: the ranges are within the sides of this sub-convolution, whose inputs are in
        // bounds; the caller guarantees `to`.
        unsafe {
            part.unfold(self.group).fill(rows, (&output_side, &self.segments), to, pitch);
            for row in 0..depth {
                to.add(row * pitch + self.count).write_bytes(0, self.width() - self.count);
            }
        }
    }

    /// Writes a block of outputs, starting at a row.
    ///
    /// # Safety
    /// If all columns have been unfolded upfront, this block's begin at `shared`. No other thread
    /// accesses these rows and columns of the output.
    unsafe fn multiply(
        &self,
        weights: &Weights<T>,
        row: usize,
        shared: *mut T,
    ) -> Result<(), EngineError> {
        let BlockColumns { part, blocks, image, group, first, .. } = *self;
        let Convolution { outputs, .. } = *part.convolution;
        let (rows, pitch) = (blocks.row_step.min(blocks.rows - row), blocks.pitch);
        let own =
            if blocks.unfold_mode == UnfoldMode::PerBlock { blocks.depth_step * pitch } else { 0 };
        let apart = if blocks.has_own_output { rows * pitch } else { 0 };
        let buffer = Buffer::new((own + apart) * size_of::<T>())?;
        let matrix = buffer.data().cast::<T>();
        let plane = part.plane(image, group, row);
        for start in (0..blocks.depth).step_by(blocks.depth_step) {
            let depth = blocks.depth_step.min(blocks.depth - start);
            // SAFETY: the inputs and weights are in bounds. Only this call accesses the buffer,
            // which has room for both matrices; the caller guarantees the output.
            unsafe {
                let b = match blocks.unfold_mode {
                    UnfoldMode::InPlace => {
                        let [image_step, channel_step] = part.input.steps;
                        let at = image * image_step + start * channel_step + first;
                        (part.unfold(group).first.get().add(at), [channel_step, 1])
                    }
                    UnfoldMode::PerBlock => {
                        self.unfold(start, matrix);
                        (matrix, [pitch, 1])
                    }
                    UnfoldMode::Upfront => (shared.add(start * pitch), [pitch, 1]),
                };
                let out = if blocks.has_own_output {
                    (matrix.add(own), [pitch, 1])
                } else {
                    (part.out.get().add(plane + first), [part.out_steps[1], 1])
                };
                let at = (group * outputs + row) * weights.row + start;
                let a = (weights.first.get().add(at).cast_const(), [weights.row, 1]);
                let (b, columns, adds) = ((b.0.cast_const(), b.1), self.width(), start > 0);
                MatrixProduct { rows, depth, columns, a, b, out, adds }.run();
            }
        }
        if blocks.has_own_output {
            // SAFETY: every row of the block has been written; the caller guarantees the output.
            unsafe { self.place(row, rows, matrix.add(own)) };
        }
        Ok(())
    }

    /// Copies a block that gemm has written to the output, starting at a row.
    ///
    /// # Safety
    /// The block has this many rows. No other thread accesses these rows and columns of the output.
    unsafe fn place(&self, first: usize, rows: usize, block: *const T) {
        let step = self.part.axes[2].output_subset.step;
        for segment in &self.segments {
            let [z, y] = segment.index;
            let at = self.part.place([z, y, segment.first]);
            let plane = self.part.plane(segment.outer, self.group, first);
            for row in 0..rows {
                // SAFETY: by the caller's guarantee; these are outputs of these rows and columns.
                unsafe {
                    let from = block.add(row * self.blocks.pitch + segment.at);
                    let to = self.part.out.get().add(plane + row * self.part.out_steps[1] + at);
                    if step == 1 {
                        std::ptr::copy_nonoverlapping(from, to, segment.length);
                    } else {
                        for index in 0..segment.length {
                            *to.add(index * step) = *from.add(index);
                        }
                    }
                }
            }
        }
    }
}
