//! How a convolution is cut into blocks of unfolded inputs.

use super::axis::gcd;
use super::sub_convolution::SubConvolution;
use super::unfold::SLACK;
use super::{Convolution, ConvolutionFloat};

/// Bytes of a block, which stays in the cache of one processor.
const BLOCK: usize = 1 << 19;
/// Whole registers of gemm's kernels, in columns of a matrix.
const TILE: usize = 64;
/// The same for the narrowest kernel.
pub const VECTOR: usize = 16;
/// Planes of fewer outputs share their blocks with those of other images where they are not whole
/// vectors.
const SMALL: usize = 1024;
/// Bytes of all unfolded inputs, where they are unfolded beforehand.
const SHARED: usize = 1 << 25;
/// Large work is split into this many pieces, if they are not too small by then.
const PIECES: usize = 16;
/// Multiplications of a piece that is not cut further.
const PIECE: usize = 1 << 20;

/// Where blocks of unfolded inputs are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum UnfoldMode {
    /// They are the inputs themselves.
    InPlace,
    /// Each block unfolds what it needs.
    PerBlock,
    /// All are unfolded beforehand, as several blocks need them.
    Upfront,
}

/// How a part is cut into blocks. What is of one kind has the same lengths, but the last of it.
pub struct BlockSizes {
    /// Images that are convolved one by one.
    pub images: usize,
    /// Outputs of such an image, or of a plane of all images.
    pub columns: usize,
    /// Of those, outputs of a block.
    pub column_step: usize,
    /// Planes of the output of a group.
    pub rows: usize,
    /// Of those, planes of a block.
    pub row_step: usize,
    /// Channels and elements of the kernel that are unfolded together.
    pub depth_step: usize,
    /// All channels and elements of the kernel of a group.
    pub depth: usize,
    /// From a row of an unfolded block to the next.
    pub pitch: usize,
    /// Where the unfolded inputs are.
    pub unfold_mode: UnfoldMode,
    /// Whether gemm writes to a block of its own, to be copied from there.
    pub has_own_output: bool,
}

impl BlockSizes {
    pub fn new<T: ConvolutionFloat>(part: &SubConvolution<T>) -> BlockSizes {
        let Convolution { batch, groups, channels, outputs, .. } = *part.convolution;
        let (pixels, depth) = (part.pixels(), channels * part.taps());
        let shares = batch > 1 && pixels < SMALL && !pixels.is_multiple_of(VECTOR);
        let (images, columns) = if shares { (1, batch * pixels) } else { (batch, pixels) };
        let block = BLOCK / size_of::<T>();
        let depth_step = depth.div_ceil(depth.div_ceil(block / TILE));
        let even = |length: usize, step: usize, unit: usize| {
            length.div_ceil(length.div_ceil(step)).next_multiple_of(unit)
        };
        let mut column_step = (block / depth_step / TILE * TILE).clamp(TILE, 1024);
        let mut row_step = outputs;
        let pieces = |column_step: usize, row_step: usize| {
            images * groups * columns.div_ceil(column_step) * outputs.div_ceil(row_step)
        };
        let is_large = |pieces: usize| pieces < PIECES && part.work() / pieces > PIECE;
        while column_step > TILE && is_large(pieces(column_step, row_step)) {
            column_step = (column_step / 2).next_multiple_of(TILE);
        }
        while row_step > 2 * TILE && is_large(pieces(column_step, row_step)) {
            row_step = row_step.div_ceil(2);
        }
        // Whole lines and vectors, or else whole tiles.
        let lines = part.axes[2].output * (VECTOR / gcd(part.axes[2].output, VECTOR));
        let unit = if lines <= column_step {
            lines
        } else if columns > 4 * TILE {
            TILE
        } else {
            VECTOR
        };
        column_step = even(columns, column_step / unit * unit, unit);
        row_step = even(outputs, row_step, 1);
        let pitch = (column_step + SLACK).next_multiple_of(VECTOR);
        let unfolded = images * groups * columns.div_ceil(column_step) * pitch;
        let unfold_mode = if !shares && is_unfolded(part) {
            UnfoldMode::InPlace
        } else if row_step < outputs && unfolded.saturating_mul(depth) <= SHARED / size_of::<T>() {
            UnfoldMode::Upfront
        } else {
            UnfoldMode::PerBlock
        };
        let has_own_output = shares || !part.is_whole();
        BlockSizes {
            images,
            columns,
            column_step,
            rows: outputs,
            row_step,
            depth_step,
            depth,
            pitch,
            unfold_mode,
            has_own_output,
        }
    }

    /// How many blocks of columns an image has.
    pub fn column_blocks(&self) -> usize {
        self.columns.div_ceil(self.column_step)
    }

    /// How many blocks of rows.
    pub fn row_blocks(&self) -> usize {
        self.rows.div_ceil(self.row_step)
    }

    /// How many blocks one after another sum up an output.
    pub fn depth_blocks(&self) -> usize {
        self.depth.div_ceil(self.depth_step)
    }
}

/// Whether the inputs are the unfolded matrix as they are.
fn is_unfolded<T: ConvolutionFloat>(part: &SubConvolution<T>) -> bool {
    part.axes.iter().all(|axis| {
        axis.kernel == 1 && axis.stride == 1 && axis.low == 0 && axis.input == axis.output
    }) && part.axes[..2].iter().all(|axis| axis.output == 1)
}
