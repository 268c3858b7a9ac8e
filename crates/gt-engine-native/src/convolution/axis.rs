//! One spatial axis of a convolution: which inputs an output sees, and the split into parts without
//! zeros between the inputs.

use std::ops::Range;

use gt_ir::ops::window::Window;

/// Splits an axis into parts without zeros between the inputs. The outputs of a part use the same
/// elements of the kernel: the others would be multiplied by zeros. A part's kernel may be empty.
pub fn parts(window: &Window, input: usize, kernel: usize) -> Vec<WindowAxis> {
    let output = window.output(input, kernel).expect("infer has checked the window");
    let base = window.base_dilation;
    let (output_step, kernel_step) =
        (base / gcd(window.stride, base), base / gcd(window.dilation, base));
    let part = |first: usize| {
        // The position in the dilated input at which the part's first output meets a tap.
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

/// A subset of an axis's elements, at even distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisSubset {
    pub first: usize,
    pub step: usize,
    /// The length of the axis.
    pub of: usize,
}

impl AxisSubset {
    /// Returns whether the subset is the whole axis.
    pub fn is_all(&self) -> bool {
        self.first == 0 && self.step == 1
    }
}

/// An axis of a convolution without zeros between the inputs. Output `o` multiplies kernel element
/// `k` with input `o * stride + k * dilation - low`, or with 0 if that is outside the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowAxis {
    pub input: usize,
    pub kernel: usize,
    pub output: usize,
    pub stride: usize,
    pub dilation: usize,
    pub low: isize,
    /// The part's outputs among those of the whole convolution.
    pub output_subset: AxisSubset,
    /// The part's kernel elements among those of the whole convolution.
    pub kernel_subset: AxisSubset,
}

impl WindowAxis {
    /// Merges this axis and the inner one into one, if possible. A step of this axis is the inner
    /// axis's length.
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

    /// Returns an axis of one element.
    fn single() -> WindowAxis {
        parts(&Window::default(), 1, 1)[0]
    }
}

/// Merges outer axes into inner ones where possible; the convolution is the same.
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

/// Returns the indices `i < count` for which `start + i * step` lies in `0..length`.
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

/// Returns the greatest common divisor.
pub fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
