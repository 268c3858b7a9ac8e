//! Max pooling: the largest element of each window, one row of outputs at a time.

use std::mem::MaybeUninit;
use std::ops::Range;

use gt_ir::instruction::Operands;
use gt_ir::operation::ints;
use gt_ir::{Attributes, Meta};
use gt_worker::EngineError;

use crate::cast;
use crate::convolution::{copy_every, pairs, within};
use crate::element::{Number, compute_dtype, with_number};
use crate::simd::vectorized;
use crate::table::tensor;
use crate::tensor::Tensor;
use crate::threads::{SharedPtr, Threads};
use crate::uninit::Uninit;

/// Window elements that one thread reads at a time.
const PIECE: usize = 1 << 16;
/// The longest length or step, so that sums of a few of them do not overflow.
const LONGEST: usize = 1 << 40;
/// A number that no element of a window has.
const NONE: u32 = u32::MAX;

/// The windows along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolWindow {
    pub kernel: usize,
    pub stride: usize,
    /// How far the first window starts before the inputs, and the last one may end after them.
    pub padding: usize,
    pub dilation: usize,
}

impl PoolWindow {
    /// Creates a window from kernel, stride, padding and dilation; `None` if one is negative.
    fn new(numbers: [i64; 4]) -> Option<PoolWindow> {
        let number = |at: usize| usize::try_from(numbers[at]).ok();
        Some(PoolWindow {
            kernel: number(0)?,
            stride: number(1)?,
            padding: number(2)?,
            dilation: number(3)?,
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct Axis {
    input: usize,
    output: usize,
    window: PoolWindow,
}

/// The lengths of a pooling. Missing spatial axes have length 1.
#[derive(Clone, Copy, Debug)]
pub struct Pooling {
    axes: [Axis; 3],
}

impl Axis {
    /// Returns the elements of a window that are within the inputs.
    fn taps(&self, output: usize) -> Range<usize> {
        within(self.start(output), self.window.dilation, self.window.kernel, self.input)
    }

    /// Returns the outputs for which an element of the window is within the inputs.
    fn outputs(&self, tap: usize) -> Range<usize> {
        let start = (tap * self.window.dilation) as isize - self.window.padding as isize;
        within(start, self.window.stride, self.output, self.input)
    }

    /// Returns where a window starts.
    fn start(&self, output: usize) -> isize {
        (output * self.window.stride) as isize - self.window.padding as isize
    }
}

impl Pooling {
    /// Creates a pooling over 1 to 3 spatial axes of these lengths. `None` if the lengths are
    /// inconsistent, or a length or product is too large.
    pub fn new(input: &[usize], output: &[usize], windows: &[PoolWindow]) -> Option<Pooling> {
        let rank = windows.len();
        if !(1..=3).contains(&rank) || input.len() != rank || output.len() != rank {
            return None;
        }
        let single = PoolWindow { kernel: 1, stride: 1, padding: 0, dilation: 1 };
        let mut axes = [Axis { input: 1, output: 1, window: single }; 3];
        for (index, window) in windows.iter().enumerate() {
            let PoolWindow { kernel, stride, padding, dilation } = *window;
            let axis = Axis { input: input[index], output: output[index], window: *window };
            let end =
                axis.output.checked_mul(stride)?.checked_add(kernel.checked_mul(dilation)?)?;
            let most = [end, axis.input, axis.output, padding].into_iter().max();
            if stride == 0 || dilation == 0 || most > Some(LONGEST) {
                return None;
            }
            axes[index + 3 - rank] = axis;
        }
        let pooling = Pooling { axes };
        let product =
            |lengths: [usize; 3]| lengths.iter().try_fold(1, |a: usize, b| a.checked_mul(*b));
        let taps = product(axes.map(|axis| axis.window.kernel))?;
        product(axes.map(|axis| axis.input))?;
        product(axes.map(|axis| axis.output))?;
        (taps < NONE as usize).then_some(pooling)
    }

    fn input(&self) -> usize {
        self.axes.iter().map(|axis| axis.input).product()
    }

    fn output(&self) -> usize {
        self.axes.iter().map(|axis| axis.output).product()
    }

    fn taps(&self) -> usize {
        self.axes.iter().map(|axis| axis.window.kernel).product()
    }

    /// Calls `body` for each plane, on several threads if there is enough work.
    fn for_each_plane(&self, threads: &mut Threads, planes: usize, body: impl Fn(usize) + Sync) {
        let work = self.output().saturating_mul(self.taps()).max(1);
        let step = (PIECE / work).clamp(1, planes.max(1));
        let piece = |piece: usize| {
            let planes = piece * step..planes.min((piece + 1) * step);
            vectorized(
                #[inline(always)]
                || planes.for_each(&body),
            );
        };
        let pieces = planes.div_ceil(step);
        if pieces < 4 { (0..pieces).for_each(piece) } else { threads.for_each(pieces, piece) }
    }

    /// Calls `body` for each element of the windows of a row of outputs that is within the inputs:
    /// with the element's number, the outputs for which it is, and their inputs.
    #[inline(always)]
    fn for_each_tap<T: Number>(
        &self,
        plane: &[T],
        [z, y]: [usize; 2],
        inputs: &mut [MaybeUninit<T>],
        mut body: impl FnMut(u32, Range<usize>, &[T]),
    ) {
        let [axis_z, axis_y, axis_x] = self.axes;
        let place = |axis: Axis, output: usize, tap: usize| {
            (axis.start(output) + (tap * axis.window.dilation) as isize) as usize
        };
        for tap_z in axis_z.taps(z) {
            for tap_y in axis_y.taps(y) {
                let line = place(axis_z, z, tap_z) * axis_y.input + place(axis_y, y, tap_y);
                let line = &plane[line * axis_x.input..][..axis_x.input];
                for tap_x in 0..axis_x.window.kernel {
                    let outputs = axis_x.outputs(tap_x);
                    if outputs.is_empty() {
                        continue;
                    }
                    let tap = (tap_z * axis_y.window.kernel + tap_y) * axis_x.window.kernel + tap_x;
                    let from = &line[place(axis_x, outputs.start, tap_x)..];
                    let inputs = &mut inputs[..outputs.len()];
                    let inputs = copy_every(from, axis_x.window.stride, inputs);
                    body(tap as u32, outputs, inputs);
                }
            }
        }
    }
}

/// Computes the operation: values and indices. 16-bit floats are compared as float32.
pub fn max_pool(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let [output, indices] = *outputs else {
        return Err(EngineError::Other("max_pool has two results".to_string()));
    };
    let dtype = compute_dtype(output.dtype);
    let x = cast::to(threads, tensor(&mut operands, 0)?, dtype)?.contiguous_with(threads)?;
    let lists = [0, 1, 2, 3].map(|list| ints(attributes, list));
    let lead = output.shape.rank() - lists[0].len();
    let windows: Option<Vec<PoolWindow>> =
        (0..lists[0].len()).map(|axis| PoolWindow::new(lists.map(|list| list[axis]))).collect();
    let pooling = windows
        .and_then(|windows| Pooling::new(&x.shape()[lead..], &output.shape[lead..], &windows))
        .ok_or_else(|| EngineError::Other("max_pool: lengths that do not fit".to_string()))?;
    let mut values = Uninit::new(Meta::new(dtype, output.shape))?;
    let mut indices = Uninit::new(indices)?;
    with_number!(dtype, T => {
        let (values, indices) = (values.slots::<T>(), indices.slots::<i64>());
        largest(threads, &pooling, x.as_slice(), values, indices);
    });
    // SAFETY: `largest` has written every element of both.
    let (values, indices) = unsafe { (values.finish(), indices.finish()) };
    Ok(vec![cast::to(threads, values, output.dtype)?, indices])
}

/// Computes the largest element of each window of the planes in `input`, which follow one another,
/// and its index within the plane. The first of equal elements is chosen; NaN is larger than any
/// number, and the last NaN is chosen, as in PyTorch. A window without inputs yields the lowest
/// number and index 0.
///
/// # Panics
/// `input`, `values` and `indices` do not have the same number of planes of the pooling's lengths.
fn largest<T: Number>(
    threads: &mut Threads,
    pooling: &Pooling,
    input: &[T],
    values: &mut [MaybeUninit<T>],
    indices: &mut [MaybeUninit<i64>],
) {
    assert!(values.len() == indices.len());
    let planes = planes(pooling, input, values);
    let [_, height, width] = pooling.axes.map(|axis| axis.input);
    let [_, tap_height, tap_width] = pooling.axes.map(|axis| axis.window.kernel);
    let [step_z, step_y, step_x] = pooling.axes.map(|axis| axis.window.dilation);
    // The distance of each window element from the window's start.
    let moved: Vec<i64> = (0..pooling.taps())
        .map(|tap| {
            let (row, x) = (tap / tap_width, tap % tap_width);
            let (z, y) = (row / tap_height, row % tap_height);
            ((z * step_z * height + y * step_y) * width + x * step_x) as i64
        })
        .collect();
    let length = pooling.axes[2].output;
    let (values, indices) =
        (SharedPtr::new(values.as_mut_ptr()), SharedPtr::new(indices.as_mut_ptr()));
    pooling.for_each_plane(
        threads,
        planes,
        #[inline(always)]
        |plane| {
            let mut best = vec![T::LOWEST; length];
            let mut taps = vec![NONE; length];
            let mut inputs = vec![MaybeUninit::uninit(); length];
            let from = &input[plane * pooling.input()..][..pooling.input()];
            let [depth, lines, _] = pooling.axes.map(|axis| axis.output);
            for (line, (z, y)) in pairs(depth, lines).enumerate() {
                best.fill(T::LOWEST);
                taps.fill(NONE);
                pooling.for_each_tap(
                    from,
                    [z, y],
                    &mut inputs,
                    #[inline(always)]
                    |tap, outputs, inputs| {
                        let bests = best[outputs.clone()].iter_mut();
                        let taps = taps[outputs].iter_mut();
                        for ((best, number), x) in bests.zip(taps).zip(inputs) {
                            let wins = *x > *best || x.is_nan() || *number == NONE;
                            *best = if wins { *x } else { *best };
                            *number = if wins { tap } else { *number };
                        }
                    },
                );
                let at = (plane * depth * lines + line) * length;
                // SAFETY: a row of the outputs of a plane, which no other thread accesses.
                let (values, indices) = unsafe {
                    let values = std::slice::from_raw_parts_mut(values.get().add(at), length);
                    (values, std::slice::from_raw_parts_mut(indices.get().add(at), length))
                };
                copy_every(&best, 1, values);
                let [z, y] = [(0, z), (1, y)].map(|(axis, at)| pooling.axes[axis].start(at));
                let start = (z * height as isize + y) * width as isize;
                for (x, (to, tap)) in indices.iter_mut().zip(&taps).enumerate() {
                    let moved = moved.get(*tap as usize);
                    let start = (start + pooling.axes[2].start(x)) as i64;
                    to.write(moved.map_or(0, |moved| start + moved));
                }
            }
        },
    );
}

/// Returns the number of planes.
fn planes<T>(pooling: &Pooling, input: &[T], out: &[MaybeUninit<T>]) -> usize {
    let (inputs, outputs) = (pooling.input(), pooling.output());
    let planes = out.len().checked_div(outputs).unwrap_or(0);
    let fits = planes * outputs == out.len() && (planes == 0 || planes * inputs == input.len());
    assert!(fits, "planes of the pooling's lengths");
    planes
}

#[cfg(test)]
mod tests;
