//! One spatial axis of a convolution: which inputs an output sees, and the parts that zeros between
//! the inputs split it into.

use std::ops::Range;

/// No length, step or padding is longer, so that sums of some of them are within bounds.
const LONGEST: usize = 1 << 40;

/// How a convolution goes along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The step between the inputs where two outputs begin.
    pub stride: usize,
    /// Zeros before the inputs; inputs that are left out where negative.
    pub padding_low: isize,
    /// The same after the inputs.
    pub padding_high: isize,
    /// The step between the inputs that two elements of the kernel meet.
    pub dilation: usize,
    /// The step between two inputs, with zeros in between.
    pub base_dilation: usize,
}

impl Default for Window {
    fn default() -> Window {
        Window { stride: 1, padding_low: 0, padding_high: 0, dilation: 1, base_dilation: 1 }
    }
}

impl Window {
    /// How many outputs there are; `None` where a step is 0, or anything is too much to count with.
    pub fn output(&self, input: usize, kernel: usize) -> Option<usize> {
        let Window { stride, padding_low, padding_high, dilation, base_dilation } = *self;
        let steps = [stride, dilation, base_dilation];
        if steps.contains(&0)
            || steps.iter().chain(&[input, kernel]).any(|x| *x > LONGEST)
            || [padding_low, padding_high].iter().any(|x| x.unsigned_abs() > LONGEST)
        {
            return None;
        }
        let fits = |count: usize, step: usize| count.saturating_mul(step) < isize::MAX as usize / 4;
        if !fits(input, base_dilation) || !fits(kernel, dilation) {
            return None;
        }
        let padded = spread(input, base_dilation) + padding_low + padding_high;
        let window = spread(kernel, dilation);
        Some(if padded < window { 0 } else { (padded - window) as usize / stride + 1 })
    }

    /// The window of the gradient for the input, which is the convolution of the output's gradient
    /// with the kernel in reverse.
    ///
    /// # Panics
    /// [`Window::output`] is `None` for these lengths.
    pub fn for_input(&self, input: usize, kernel: usize) -> Window {
        let output = self.output(input, kernel).expect("a window of these lengths");
        let reach = spread(kernel, self.dilation) - 1;
        let padding_low = reach - self.padding_low;
        let whole = reach + 1 + (input as isize - 1) * self.base_dilation as isize;
        Window {
            stride: self.base_dilation,
            padding_low,
            padding_high: whole - spread(output, self.stride) - padding_low,
            dilation: self.dilation,
            base_dilation: self.stride,
        }
    }

    /// The window of the gradient for the weight, which is the convolution of the input with the
    /// output's gradient.
    ///
    /// # Panics
    /// [`Window::output`] is `None` for these lengths.
    pub fn for_weight(&self, input: usize, kernel: usize) -> Window {
        let output = self.output(input, kernel).expect("a window of these lengths");
        let reach = (kernel as isize - 1) * self.dilation as isize;
        let whole = reach + spread(output, self.stride);
        Window {
            stride: self.dilation,
            padding_high: whole - spread(input, self.base_dilation) - self.padding_low,
            dilation: self.stride,
            ..*self
        }
    }

    /// The axis without zeros between the inputs, in parts: each has the outputs that meet the
    /// same elements of the kernel, for zeros need no multiplying. A part's kernel may be empty.
    pub fn parts(&self, input: usize, kernel: usize) -> Vec<Axis> {
        let output = self.output(input, kernel).expect("checked before");
        let base = self.base_dilation;
        let (output_step, kernel_step) =
            (base / gcd(self.stride, base), base / gcd(self.dilation, base));
        let part = |first: usize| {
            // Where output and kernel elements of the part meet, before division by the base.
            let start = |tap: usize| {
                (first * self.stride + tap * self.dilation) as isize - self.padding_low
            };
            let tap = (0..kernel_step.min(kernel)).find(|tap| start(*tap) % base as isize == 0);
            Axis {
                input,
                kernel: tap.map_or(0, |tap| (kernel - tap).div_ceil(kernel_step)),
                output: (output - first).div_ceil(output_step),
                stride: self.stride / gcd(self.stride, base),
                dilation: self.dilation / gcd(self.dilation, base),
                low: -(start(tap.unwrap_or(0)) / base as isize),
                placed: Every { first, step: output_step, of: output },
                taken: Every { first: tap.unwrap_or(0), step: kernel_step, of: kernel },
            }
        };
        (0..output_step.min(output)).map(part).collect()
    }
}

/// Some of an axis's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Every {
    pub first: usize,
    pub step: usize,
    /// How long the axis is.
    pub of: usize,
}

impl Every {
    /// Whether these are all elements in their order.
    pub fn is_all(&self) -> bool {
        self.first == 0 && self.step == 1
    }
}

/// An axis of a convolution without zeros between the inputs. Output `o` and kernel element `k`
/// meet at input `o * stride + k * dilation - low`, which counts as 0 where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    pub input: usize,
    pub kernel: usize,
    pub output: usize,
    pub stride: usize,
    pub dilation: usize,
    pub low: isize,
    /// Which of the whole convolution's outputs these are.
    pub placed: Every,
    /// Which of its kernel's elements.
    pub taken: Every,
}

impl Axis {
    /// Two axes as one, this one's steps being as long as the inner one; where that is possible.
    fn merge(&self, inner: &Axis) -> Option<Axis> {
        let all = [self.placed, self.taken, inner.placed, inner.taken].iter().all(Every::is_all);
        if !all || inner.low != 0 {
            return None;
        }
        let width = inner.input;
        let low = self.low.checked_mul(width as isize)?;
        let merged = Axis {
            input: self.input * width,
            low,
            placed: Every { of: self.placed.of * inner.placed.of, ..self.placed },
            taken: Every { of: self.taken.of * inner.taken.of, ..self.taken },
            ..*self
        };
        let is_row = inner.kernel == 1 && inner.output == width && inner.stride == 1;
        if is_row && self.stride == 1 {
            let dilation = self.dilation.checked_mul(width)?;
            return Some(Axis { output: self.output * width, dilation, ..merged });
        }
        let is_window = inner.output == 1 && inner.kernel == width && inner.dilation == 1;
        if is_window && self.dilation == 1 {
            let stride = self.stride.checked_mul(width)?;
            return Some(Axis { kernel: self.kernel * width, stride, ..merged });
        }
        None
    }

    /// An axis of one element.
    fn single() -> Axis {
        Window::default().parts(1, 1)[0]
    }
}

/// The same convolution with longer inner axes, where outer ones only repeat them.
pub fn merged([outer, middle, inner]: [Axis; 3]) -> [Axis; 3] {
    let single = Axis::single();
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

/// From the first of so many elements to behind the last one.
fn spread(count: usize, step: usize) -> isize {
    count.checked_sub(1).map_or(0, |steps| (steps * step + 1) as isize)
}

/// The greatest common divisor.
pub fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
