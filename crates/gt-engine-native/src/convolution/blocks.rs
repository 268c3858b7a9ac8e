//! The sizes of the blocks of unfolded inputs that a convolution is split into.

use super::axis::gcd;
use super::sub_convolution::SubConvolution;
use super::unfold::SLACK;
use super::{Convolution, ConvolutionFloat};

/// Bytes of a block, which fits in the cache of one core.
const BLOCK: usize = 1 << 19;
/// Columns of a matrix that fill the registers of gemm's widest kernel.
const TILE: usize = 64;
/// Columns that fill the registers of gemm's narrowest kernel.
pub const VECTOR: usize = 16;
/// Images whose planes have fewer outputs than this share blocks, unless a plane is a multiple of
/// `VECTOR`.
const SMALL: usize = 1024;
/// The most bytes of unfolded inputs if all are unfolded upfront.
const SHARED: usize = 1 << 25;
/// Large work is split into at least this many pieces, unless they would be too small.
const PIECES: usize = 16;
/// A piece with at most this many multiplications is not split further.
const PIECE: usize = 1 << 20;

/// When and where inputs are unfolded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum UnfoldMode {
    /// The inputs are already the unfolded matrix.
    InPlace,
    /// Each block unfolds its own inputs.
    PerBlock,
    /// All inputs are unfolded before the first product, since several blocks use them.
    Upfront,
}

/// The sizes of a sub-convolution's blocks. All blocks along an axis have the same length, except
/// the last.
pub struct BlockSizes {
    /// Images that are convolved one by one; 1 if all images share blocks.
    pub images: usize,
    /// Outputs of a plane of one image, or of all images if they share blocks.
    pub columns: usize,
    /// Columns of a block.
    pub column_step: usize,
    /// Output planes of a group.
    pub rows: usize,
    /// Rows of a block.
    pub row_step: usize,
    /// Rows of the depth (channels times kernel elements) that are unfolded together.
    pub depth_step: usize,
    /// All channels times all kernel elements of a group.
    pub depth: usize,
    /// The distance between rows of an unfolded block, in elements.
    pub pitch: usize,
    /// When and where inputs are unfolded.
    pub unfold_mode: UnfoldMode,
    /// Whether gemm writes to a temporary block, which is then copied to the output.
    pub has_own_output: bool,
}

impl BlockSizes {
    /// Chooses the sizes for a sub-convolution.
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
        // A multiple of both the output's line and `VECTOR` if that fits, else of a tile.
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

    /// Returns the number of blocks along the columns of an image.
    pub fn column_blocks(&self) -> usize {
        self.columns.div_ceil(self.column_step)
    }

    /// Returns the number of blocks along the rows.
    pub fn row_blocks(&self) -> usize {
        self.rows.div_ceil(self.row_step)
    }

    /// Returns the number of blocks along the depth, whose products are added up.
    pub fn depth_blocks(&self) -> usize {
        self.depth.div_ceil(self.depth_step)
    }
}

/// Returns whether the inputs are already the unfolded matrix.
fn is_unfolded<T: ConvolutionFloat>(part: &SubConvolution<T>) -> bool {
    part.axes.iter().all(|axis| {
        axis.kernel == 1 && axis.stride == 1 && axis.low == 0 && axis.input == axis.output
    }) && part.axes[..2].iter().all(|axis| axis.output == 1)
}
