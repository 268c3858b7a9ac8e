//! Windows that slide along an axis: how many there are, and those of gradients.

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

    /// How many outputs there are where a last window may go over the end, if it begins in the
    /// input or the padding before it.
    pub fn output_over_end(&self, input: usize, kernel: usize) -> Option<usize> {
        let fitting = self.output(input, kernel)?;
        let room = spread(input, self.base_dilation) + self.padding_low + self.padding_high
            - spread(kernel, self.dilation);
        let stride = self.stride as isize;
        let begins_within = fitting as isize * stride - self.padding_low < input as isize;
        let is_over = room > -stride && room % stride != 0 && begins_within;
        Some(fitting + usize::from(is_over))
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
}

/// The extent from the first of `count` elements to behind the last one.
fn spread(count: usize, step: usize) -> isize {
    count.checked_sub(1).map_or(0, |steps| (steps * step + 1) as isize)
}
