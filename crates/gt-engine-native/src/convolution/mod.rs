//! Convolution in its general form. A transposed convolution and both gradients are the same
//! operation with other windows or with axes exchanged.
//!
//! - [`operation`]: converts tensors to planes in memory.
//! - [`conv_general`]: the entry point for floats; [`Convolution`] has its parameters.
//! - [`axis`]: a spatial axis. The zeros that base dilation puts between inputs are never
//!   multiplied: a convolution is split into [sub-convolutions](sub_convolution) without them.
//!
//! The algorithms:
//!
//! - [`indirect`], if there are enough outputs to fill a register: each output finds its inputs
//!   through a table of offsets, and a [`tile`] of pixels and outputs is summed in registers
//!   ([`vector`]).
//! - [`im2col`], if the output's spatial axes are long: inputs are [unfolded](unfold) into
//!   matrices, one [block](blocks) at a time, and multiplied by gemm.
//! - [`long_kernel`], if the kernel is longer than the output (the gradient of a weight): the same
//!   with the roles of output and kernel exchanged, summed over pieces of the kernel.
//! - [`scatter`], if outputs are few compared with inputs (the gradient of images): inputs are
//!   multiplied without unfolding, and each product is added to its output.
//! - [`depthwise`], and for long kernels [`correlate`], if each channel or group has few outputs:
//!   direct sums over a [`grid`] of inputs, without matrices.
//! - [`direct`]: plain loops, for integers.
//!
//! The pieces of work depend only on the shapes, so that results do not depend on the number of
//! threads.

mod axis;
mod blocks;
mod correlate;
mod depthwise;
mod direct;
#[cfg(test)]
mod gradient_tests;
mod grid;
mod im2col;
mod indirect;
mod long_kernel;
mod operation;
mod scatter;
mod sub_convolution;
#[cfg(test)]
mod tests;
mod tile;
mod unfold;
mod vector;

use std::mem::MaybeUninit;
use std::ops::{Add, Mul};

use gt_worker::EngineError;

use crate::element::Number;
use crate::threads::{SharedPtr, Threads};

pub(crate) use axis::within;
use axis::{WindowAxis, merged, parts};
use grid::Grid;
pub(crate) use grid::pairs;
use gt_ir::ops::window::Window;
pub use operation::conv_general as operation;
pub(crate) use sub_convolution::MatrixProduct;
use sub_convolution::{Origin, SubConvolution};
pub(crate) use unfold::copy_every;
use vector::Registers;

/// Convolutions with fewer multiplications than this run on one thread.
const PARALLEL: usize = 1 << 19;

/// Large convolutions are computed plane by plane only if there are at least this many planes for
/// the threads to share.
const PLANES: usize = 4;

/// Elements of an output that a thread zeroes at a time.
const ZEROS: usize = 1 << 16;

/// The float types that convolutions are computed in: float32 and float64, which gemm supports.
pub trait ConvolutionFloat: Number + Registers + Add<Output = Self> + Mul<Output = Self> {}

impl ConvolutionFloat for f32 {}
impl ConvolutionFloat for f64 {}

/// The lengths and windows of a convolution. Missing spatial axes have length 1.
#[derive(Clone, Copy, Debug)]
pub struct Convolution {
    batch: usize,
    groups: usize,
    /// Input channels of a group.
    channels: usize,
    /// Output channels of a group.
    outputs: usize,
    input: [usize; 3],
    kernel: [usize; 3],
    output: [usize; 3],
    windows: [Window; 3],
}

impl Convolution {
    /// Returns the convolution of an input (batch, channels, spatial...) with a weight (outputs,
    /// channels / groups, spatial...), with a window for each of 1 to 3 spatial axes. Returns
    /// `None` if the lengths do not match or a size overflows.
    pub fn new(
        input: &[usize],
        weight: &[usize],
        windows: &[Window],
        groups: usize,
    ) -> Option<Convolution> {
        let rank = windows.len();
        if !(1..=3).contains(&rank) || input.len() != rank + 2 || weight.len() != rank + 2 {
            return None;
        }
        let fits = groups > 0 && weight[0].is_multiple_of(groups);
        if !fits || weight[1].checked_mul(groups) != Some(input[1]) {
            return None;
        }
        let mut convolution = Convolution {
            batch: input[0],
            groups,
            channels: weight[1],
            outputs: weight[0] / groups,
            input: [1; 3],
            kernel: [1; 3],
            output: [1; 3],
            windows: [Window::default(); 3],
        };
        for (axis, window) in windows.iter().enumerate() {
            let (at, from) = (axis + 3 - rank, axis + 2);
            convolution.input[at] = input[from];
            convolution.kernel[at] = weight[from];
            convolution.output[at] = window.output(input[from], weight[from])?;
            convolution.windows[at] = *window;
        }
        let product =
            |lengths: &[usize]| lengths.iter().try_fold(1, |a: usize, b| a.checked_mul(*b));
        let all = [convolution.batch, weight[0], product(&convolution.output)?];
        // Empty axes count as 1, so that the product of any subset of the axes does not overflow
        // either.
        let positive =
            |lengths: &[usize]| product(&lengths.iter().map(|x| *x.max(&1)).collect::<Vec<_>>());
        positive(input)?.checked_mul(size_of::<f64>())?;
        positive(weight)?.checked_mul(size_of::<f64>())?;
        positive(&all)?.checked_mul(size_of::<f64>())?;
        Some(convolution)
    }

    /// Returns the number of elements of the output.
    pub fn numel(&self) -> usize {
        self.batch * self.groups * self.outputs * self.output.iter().product::<usize>()
    }

    /// Returns the axes of the sub-convolutions without zeros between the inputs.
    fn parts(&self) -> Vec<[WindowAxis; 3]> {
        let axes = |axis: usize| parts(&self.windows[axis], self.input[axis], self.kernel[axis]);
        let [outer, middle, inner] = [0, 1, 2].map(axes);
        let mut parts = Vec::new();
        for outer in &outer {
            for middle in &middle {
                parts.extend(inner.iter().map(|inner| merged([*outer, *middle, *inner])));
            }
        }
        parts
    }
}

/// A tensor of planes, one for each index of its first two axes: (batch, channels) of an input,
/// (outputs, channels) of a weight. A plane is contiguous, in row-major order. Only the planes of a
/// weight may be reversed, from the last element to the first.
#[derive(Clone, Copy)]
pub struct Planes<'a, T> {
    pub data: &'a [T],
    /// The distances between planes along each of the first two axes.
    pub steps: [usize; 2],
    pub is_reversed: bool,
}

impl<'a, T> Planes<'a, T> {
    /// Returns the origin, after checking that all planes lie within the data.
    fn origin(&self, counts: [usize; 2], plane: [usize; 3]) -> Origin<T> {
        let plane: usize = plane.iter().product();
        if plane * counts[0] * counts[1] > 0 {
            let last = |axis: usize| (counts[axis] - 1).checked_mul(self.steps[axis]);
            let end = last(0).zip(last(1)).and_then(|(a, b)| a.checked_add(b)?.checked_add(plane));
            assert!(end.is_some_and(|end| end <= self.data.len()), "planes beyond their data");
        }
        let first = SharedPtr::new(self.data.as_ptr().cast_mut());
        Origin { first, steps: self.steps, is_reversed: self.is_reversed }
    }
}

/// Convolves input and weight, whose lengths are in `convolution`. Writes every element of `out`,
/// in row-major order: (batch, outputs, spatial...), or (outputs, batch, spatial...) if
/// `is_transposed`.
///
/// The gradient for the input is the convolution of the output's gradient with the weight by
/// [`Window::for_input`]; the weight's first two axes are exchanged within each group, and its
/// kernel is reversed. The gradient for the weight is the convolution of the input with the
/// output's gradient by [`Window::for_weight`]; batch and channels are exchanged in the input, the
/// output's gradient and the result. With several groups, the batch of that input is the channels
/// of a group and its channels are (groups, batch).
///
/// # Errors
/// There is not enough memory for the blocks of unfolded inputs.
///
/// # Panics
/// The length of a slice does not match the convolution.
pub fn conv_general<T: ConvolutionFloat>(
    threads: &mut Threads,
    convolution: &Convolution,
    input: Planes<T>,
    weight: Planes<T>,
    is_transposed: bool,
    out: &mut [MaybeUninit<T>],
) -> Result<(), EngineError> {
    let Convolution { batch, groups, channels, outputs, .. } = *convolution;
    assert!(out.len() == convolution.numel(), "an output of the convolution's shape");
    if out.is_empty() {
        return Ok(());
    }
    assert!(!input.is_reversed, "an input in its own order");
    let input = input.origin([batch, groups * channels], convolution.input);
    let weight = weight.origin([groups * outputs, channels], convolution.kernel);
    let plane: usize = convolution.output.iter().product();
    let out_steps =
        if is_transposed { [plane, batch * plane] } else { [groups * outputs * plane, plane] };
    let parts = convolution.parts();
    let is_empty =
        |axes: &[WindowAxis; 3]| channels == 0 || axes.iter().any(|axis| axis.kernel == 0);
    if parts.iter().any(is_empty) {
        threads.for_each_part(out, ZEROS, |_, out| out.fill(MaybeUninit::new(T::ZERO)));
    }
    let out = SharedPtr::new(out.as_mut_ptr().cast::<T>());
    for axes in parts.into_iter().filter(|axes| !is_empty(axes)) {
        let part = SubConvolution { convolution, axes, input, weight, out, out_steps };
        let (output, kernel) = (part.output_side(), part.kernel_side());
        let is_long_kernel = axes[2].kernel > axes[2].output;
        // The algorithms on grids compute one plane at a time.
        let is_even = batch * groups >= PLANES || part.work() < PARALLEL;
        let grid = if !is_even {
            None
        } else if is_long_kernel && outputs <= correlate::OUTPUTS {
            Grid::new(&part, kernel, output)
        } else if !is_long_kernel && channels == 1 && outputs <= depthwise::OUTPUTS {
            Grid::new(&part, output, kernel)
        } else {
            None
        };
        match grid {
            Some(grid) if is_long_kernel => correlate::run(threads, &part, &grid)?,
            Some(grid) => depthwise::run(threads, &part, &grid)?,
            None if indirect::is_better(&part) => indirect::run(threads, &part)?,
            None if scatter::is_better(&part) => scatter::run(threads, &part)?,
            None if is_long_kernel => long_kernel::run(threads, &part)?,
            None => im2col::run(threads, &part)?,
        }
    }
    Ok(())
}
