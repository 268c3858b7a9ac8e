//! Convolutions of integers, by plain loops; sums wrap.

use std::mem::MaybeUninit;

use super::grid::pairs;
use super::{Convolution, Planes};
use crate::element::Number;
use crate::threads::Threads;

/// Convolves as [`super::conv_general`] does.
///
/// # Panics
/// The length of a slice does not match the convolution.
pub fn conv_general<T: Number>(
    threads: &mut Threads,
    convolution: &Convolution,
    input: Planes<T>,
    weight: Planes<T>,
    out: &mut [MaybeUninit<T>],
) {
    let Convolution { groups, channels, outputs, output, .. } = *convolution;
    let pixels: usize = output.iter().product();
    if out.is_empty() {
        return;
    }
    threads.for_each_part(out, pixels, |plane, out| {
        let (image, row) = (plane / (groups * outputs), plane % (groups * outputs));
        for (place, out) in out.iter_mut().enumerate() {
            let place = indices(place, output);
            let mut sum = T::ZERO;
            for channel in 0..channels {
                let from =
                    image * input.steps[0] + (row / outputs * channels + channel) * input.steps[1];
                let kernel = row * weight.steps[0] + channel * weight.steps[1];
                for_each_tap(convolution, place, |tap, at| {
                    sum = sum.plus(input.data[from + at].times(weight.data[kernel + tap]));
                });
            }
            out.write(sum);
        }
    });
}

/// Calls `body` for each kernel element that an output multiplies with an input, with the flat
/// index of the element in the kernel and that of the input in its plane.
fn for_each_tap(convolution: &Convolution, place: [usize; 3], mut body: impl FnMut(usize, usize)) {
    let Convolution { input, kernel, windows, .. } = *convolution;
    let met = |axis: usize, tap: usize| {
        let window = windows[axis];
        let at = (place[axis] * window.stride + tap * window.dilation) as isize;
        let at = usize::try_from(at - window.padding_low).ok()?;
        let index = at / window.base_dilation;
        (at.is_multiple_of(window.base_dilation) && index < input[axis]).then_some(index)
    };
    for (z, y) in pairs(kernel[0], kernel[1]) {
        let (Some(at_z), Some(at_y)) = (met(0, z), met(1, y)) else { continue };
        for x in 0..kernel[2] {
            if let Some(at_x) = met(2, x) {
                let tap = (z * kernel[1] + y) * kernel[2] + x;
                body(tap, (at_z * input[1] + at_y) * input[2] + at_x);
            }
        }
    }
}

/// Returns the indices along three axes of the element with a flat index.
fn indices(number: usize, [_, middle, inner]: [usize; 3]) -> [usize; 3] {
    [number / inner / middle, number / inner % middle, number % inner]
}
