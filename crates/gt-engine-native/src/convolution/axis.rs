//! One spatial axis of a convolution: which inputs an output sees, and the parts that zeros between
//! the inputs split it into.

use std::ops::Range;

use gt_ir::ops::window::Window;

/// The axis without zeros between the inputs, in parts: each has the outputs that meet the
/// same elements of the kernel, for zeros need no multiplying. A part's kernel may be empty.
pub fn parts(window: &Window, input: usize, kernel: usize) -> Vec<WindowAxis> {
    let output = window.output(input, kernel).expect("checked before");
    let base = window.base_dilation;
    let (output_step, kernel_step) =
        (base / gcd(window.stride, base), base / gcd(window.dilation, base));
    let part = |first: usize| {
        // Where output and kernel elements of the part meet, before division by the base.
        let start = |tap: usize| {
            (first * window.stride + tap * window.dilation) as isize - window.padding_low
        };
        let tap = (0..kernel_step.min(kernel)).find(|tap| start(*tap) % base as isize == 0);
        WindowAxis {
            input,
            kernel: tap.map_or(0, |tap| (kernel - tap).div_ceil(kernel_step)),
            output: (output - first).div_ceil(output_step),
            stride: window.stride / gcd(window.stride, base),
            dilation: window.dilation / gcd(window.dilation, base),
            low: -(start(tap.unwrap_or(0)) / base as isize),
            output_subset: AxisSubset { first, step: output_step, of: output },
            kernel_subset: AxisSubset { first: tap.unwrap_or(0), step: kernel_step, of: kernel },
        }
    };
    (0..output_step.min(output)).map(part).collect()
}

/// Some of an axis's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisSubset {
    pub first: usize,
    pub step: usize,
    /// How long the axis is.
    pub of: usize,
}

impl AxisSubset {
    /// Whether these are all elements in their order.
    pub fn is_all(&self) -> bool {
        self.first == 0 && self.step == 1
    }
}

/// An axis of a convolution without zeros between the inputs. Output `o` and kernel element `k`
/// meet at input `o * stride + k * dilation - low`, which counts as 0 where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowAxis {
    pub input: usize,
    pub kernel: usize,
    pub output: usize,
    pub stride: usize,
    pub dilation: usize,
    pub low: isize,
    /// Which of the whole convolution's outputs these are.
    pub output_subset: AxisSubset,
    /// Which of its kernel's elements.
    pub kernel_subset: AxisSubset,
}

impl WindowAxis {
    /// Two axes as one, this one's steps being as long as the inner one; where that is possible.
    fn merge(&self, inner: &WindowAxis) -> Option<WindowAxis> {
        let all =
            [self.output_subset, self.kernel_subset, inner.output_subset, inner.kernel_subset]
                .iter()
                .all(AxisSubset::is_all);
        if !all || inner.low != 0 {
            return None;
        }
        let width = inner.input;
        let low = self.low.checked_mul(width as isize)?;
        let merged = WindowAxis {
            input: self.input * width,
            low,
            output_subset: AxisSubset {
                of: self.output_subset.of * inner.output_subset.of,
                ..self.output_subset
            },
            kernel_subset: AxisSubset {
                of: self.kernel_subset.of * inner.kernel_subset.of,
                ..self.kernel_subset
            },
            ..*self
        };
        let is_row = inner.kernel == 1 && inner.output == width && inner.stride == 1;
        if is_row && self.stride == 1 {
            let dilation = self.dilation.checked_mul(width)?;
            return Some(WindowAxis { output: self.output * width, dilation, ..merged });
        }
        let is_window = inner.output == 1 && inner.kernel == width && inner.dilation == 1;
        if is_window && self.dilation == 1 {
            let stride = self.stride.checked_mul(width)?;
            return Some(WindowAxis { kernel: self.kernel * width, stride, ..merged });
        }
        None
    }

    /// An axis of one element.
    fn single() -> WindowAxis {
        parts(&Window::default(), 1, 1)[0]
    }
}

/// The same convolution with longer inner axes, where outer ones only repeat them.
pub fn merged([outer, middle, inner]: [WindowAxis; 3]) -> [WindowAxis; 3] {
    let single = WindowAxis::single();
    match middle.merge(&inner) {
        Some(inner) => match outer.merge(&inner) {
            Some(inner) => [single, single, inner],
            None => [single, outer, inner],
        },
        None => match outer.merge(&middle) {
            Some(middle) => [single, middle, inner],
            None => [outer, middle, inner],
        },
    }
}

/// Those of `count` steps from `start` on that end within `length`.
#[inline(always)]
pub fn within(start: isize, step: usize, count: usize, length: usize) -> Range<usize> {
    let steps = |distance: isize| match usize::try_from(distance) {
        Ok(distance) if step == 1 => distance.min(count),
        Ok(distance) => distance.div_ceil(step).min(count),
        Err(_) => 0,
    };
    let end = steps(length as isize - start);
    steps(-start).min(end)..end
}

/// The greatest common divisor.
pub fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
