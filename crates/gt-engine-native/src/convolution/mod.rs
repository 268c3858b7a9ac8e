//! Convolution, in its general form: transposed convolution and both gradients are the same with
//! other windows, or with axes exchanged.
//!
//! - [`operation`]: from tensors to planes in memory.
//! - [`conv_general`] here is the one entry for floats, [`Convolution`] its parameters.
//! - [`axis`]: a spatial axis. Zeros between inputs are never multiplied: they split a convolution
//!   into [`part`]s that have none.
//! - [`indirect`], where there are enough outputs to fill a register: each finds its inputs by a
//!   table of offsets, and a [`tile`] of pixels and outputs is summed in registers ([`vector`]).
//! - [`wide`], where outputs are the long axes: inputs are [unfolded](unfold) into matrices, a
//!   [block](blocks) at a time, and multiplied by gemm.
//! - [`deep`], where the kernel is what is long (the gradient of a weight): the same with outputs
//!   and kernel exchanged, summed over pieces of the kernel.
//! - [`scatter`], where outputs are few beside the inputs (the gradient of images): inputs are
//!   multiplied as they are, and the products added up where they belong.
//! - [`direct`]: integers, by plain loops.
//! - [`depthwise`] and, where the kernel is long, [`correlate`]: few outputs for each channel,
//!   without matrices, from a [`grid`] of inputs.
//!
//! How work is cut into pieces depends on the shapes alone, so that results do not depend on the
//! number of threads.

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

/// Convolutions of fewer multiplications stay on one thread.
const PARALLEL: usize = 1 << 19;

/// Large work is done plane by plane only if there are this many, for the threads to share.
const PLANES: usize = 4;

/// Elements of an output that one thread sets to 0 at a time.
const ZEROS: usize = 1 << 16;

/// The floats that convolutions are computed in: float32 and float64, which gemm takes.
pub trait ConvolutionFloat: Number + Registers + Add<Output = Self> + Mul<Output = Self> {}

impl ConvolutionFloat for f32 {}
impl ConvolutionFloat for f64 {}

/// The lengths of a convolution and its windows. Spatial axes that are not there have length 1.
#[derive(Clone, Copy, Debug)]
pub struct Convolution {
    batch: usize,
    groups: usize,
    /// Inputs of a group.
    channels: usize,
    /// Outputs of a group.
    outputs: usize,
    input: [usize; 3],
    kernel: [usize; 3],
    output: [usize; 3],
    windows: [Window; 3],
}

impl Convolution {
    /// A convolution of an input (batch, channels, spatial...) with a weight (outputs, channels /
    /// groups, spatial...), which has a window for each of 1 to 3 spatial axes. `None` where the
    /// lengths do not fit one another, or are more than can be counted.
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
        // Empty axes may stand beside long ones: no product of some axes overflows either.
        let positive =
            |lengths: &[usize]| product(&lengths.iter().map(|x| *x.max(&1)).collect::<Vec<_>>());
        positive(input)?.checked_mul(size_of::<f64>())?;
        positive(weight)?.checked_mul(size_of::<f64>())?;
        positive(&all)?.checked_mul(size_of::<f64>())?;
        Some(convolution)
    }

    /// How many elements the output has.
    pub fn numel(&self) -> usize {
        self.batch * self.groups * self.outputs * self.output.iter().product::<usize>()
    }

    /// The parts that zeros between inputs split it into.
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
/// (outputs, channels) of a weight. A plane's elements follow one another in row-major order, or
/// from the last to the first where they are reversed, which only a weight's may be.
#[derive(Clone, Copy)]
pub struct Planes<'a, T> {
    pub data: &'a [T],
    /// From a plane to the next one along each of the first two axes.
    pub steps: [usize; 2],
    pub is_reversed: bool,
}

impl<'a, T> Planes<'a, T> {
    /// Its origin, once it is certain that all planes lie within the data.
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

/// Convolves input and weight, whose lengths are in `convolution`. Writes every element of `out`
/// (batch, outputs, spatial...) in row-major order, or (outputs, batch, spatial...) if it is
/// transposed.
///
/// The gradient for the input is the convolution of the output's gradient with the weight, its
/// first two axes exchanged (within each group) and its kernel in reverse, by
/// [`Window::for_input`]. The gradient for the weight is that of the input with the output's
/// gradient by [`Window::for_weight`], batch and channels exchanged in all three; where there are
/// groups, the input's batch is the channels of a group and its channels are (groups, batch).
///
/// # Errors
/// There is no memory for blocks of unfolded inputs.
///
/// # Panics
/// A slice does not have the elements that the lengths ask for.
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
        // Planes are done one by one there.
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
