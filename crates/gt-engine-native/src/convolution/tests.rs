//! Compares every algorithm with plain loops on random shapes.

use super::*;

/// A generator of pseudo-random numbers.
pub struct TestNumbers(pub u64);

impl TestNumbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    /// Returns a number in `from..=to`.
    fn among(&mut self, from: isize, to: isize) -> isize {
        from + self.below((to - from + 1) as usize) as isize
    }

    pub fn values<T: From<f32>>(&mut self, count: usize) -> Vec<T> {
        (0..count).map(|_| T::from(self.below(2001) as f32 / 1000.0 - 1.0)).collect()
    }
}

/// Returns the planes of a contiguous tensor.
pub fn contiguous<T>(data: &[T], channels: usize, plane: usize) -> Planes<'_, T> {
    Planes { data, steps: [channels * plane, plane], is_reversed: false }
}

pub struct Case {
    pub input: Vec<usize>,
    pub weight: Vec<usize>,
    pub windows: Vec<Window>,
    pub groups: usize,
}

/// Returns the outputs, computed by plain loops and summed in float64.
fn reference<T: Into<f64> + Copy>(
    case: &Case,
    convolution: &Convolution,
    x: &[T],
    w: &[T],
) -> Vec<f64> {
    let Convolution { batch, groups, channels, outputs, input, kernel, output, windows } =
        *convolution;
    assert_eq!(case.groups, groups);
    let all = |lengths: [usize; 3]| {
        let [z, y, x] = lengths;
        (0..z).flat_map(move |i| (0..y).flat_map(move |j| (0..x).map(move |k| [i, j, k])))
    };
    let mut result = Vec::new();
    for image in 0..batch {
        for plane in 0..groups * outputs {
            for place in all(output) {
                let mut sum = 0.0;
                for channel in 0..channels {
                    for (number, tap) in all(kernel).enumerate() {
                        let meets = |axis: usize| {
                            let window = windows[axis];
                            let at = (place[axis] * window.stride + tap[axis] * window.dilation)
                                as isize
                                - window.padding_low;
                            let base = window.base_dilation as isize;
                            let inside =
                                at >= 0 && at % base == 0 && at / base < input[axis] as isize;
                            inside.then_some((at / base) as usize)
                        };
                        let [Some(i), Some(j), Some(k)] = [0, 1, 2].map(meets) else { continue };
                        let from = (image * groups + plane / outputs) * channels + channel;
                        let from = ((from * input[0] + i) * input[1] + j) * input[2] + k;
                        let taps: usize = kernel.iter().product();
                        let weight: f64 = w[(plane * channels + channel) * taps + number].into();
                        sum += x[from].into() * weight;
                    }
                }
                result.push(sum);
            }
        }
    }
    result
}

pub fn run<T: ConvolutionFloat>(
    threads: usize,
    convolution: &Convolution,
    input: Planes<T>,
    weight: Planes<T>,
) -> Vec<T> {
    let mut threads = Threads::new(threads);
    let mut out: Vec<MaybeUninit<T>> =
        (0..convolution.numel()).map(|_| MaybeUninit::uninit()).collect();
    conv_general(&mut threads, convolution, input, weight, false, &mut out).unwrap();
    // SAFETY: all outputs have been written.
    let plain: Vec<T> = out.iter().map(|x| unsafe { x.assume_init() }).collect();
    conv_general(&mut threads, convolution, input, weight, true, &mut out).unwrap();
    let (images, planes) = (convolution.batch, convolution.groups * convolution.outputs);
    let plane: usize = convolution.output.iter().product();
    for (index, value) in plain.iter().enumerate() {
        let (rest, pixel) = (index / plane, index % plane);
        let transposed = (rest % planes * images + rest / planes) * plane + pixel;
        // SAFETY: as above.
        assert!(unsafe { out[transposed].assume_init() } == *value, "{convolution:?} transposed");
    }
    plain
}

/// Compares one case with plain loops, also with planes in another order and with more threads.
pub fn check<T>(numbers: &mut TestNumbers, case: &Case, tolerance: f64)
where
    T: ConvolutionFloat + PartialEq + From<f32> + Into<f64> + std::fmt::Debug,
{
    let shape =
        format!("{:?} * {:?}, {:?}, {}", case.input, case.weight, case.windows, case.groups);
    let Some(convolution) = Convolution::new(&case.input, &case.weight, &case.windows, case.groups)
    else {
        panic!("{shape} is refused")
    };
    let x: Vec<T> = numbers.values(case.input.iter().product());
    let w: Vec<T> = numbers.values(case.weight.iter().product());
    let planes =
        |lengths: &[usize]| (lengths[0], lengths[1], lengths[2..].iter().product::<usize>());
    let ((images, inputs, plane), (outputs, channels, taps)) =
        (planes(&case.input), planes(&case.weight));
    let input = contiguous(&x, inputs, plane);
    let weight = contiguous(&w, channels, taps);
    let result = run(1, &convolution, input, weight);
    let expected = reference(case, &convolution, &x, &w);
    assert_eq!(result.len(), expected.len(), "{shape}");
    let depth = (channels * taps) as f64;
    for (index, (result, expected)) in result.iter().zip(&expected).enumerate() {
        let difference = ((*result).into() - expected).abs();
        assert!(
            difference <= tolerance * depth.max(1.0),
            "{shape} at {index}: {result:?} {expected}"
        );
    }
    assert_eq!(run(3, &convolution, input, weight), result, "{shape} on 3 threads");
    let transposed = |values: &[T], rows: usize, columns: usize, plane: usize| {
        let mut to = Vec::with_capacity(values.len());
        for column in 0..columns {
            for row in 0..rows {
                to.extend_from_slice(&values[(row * columns + column) * plane..][..plane]);
            }
        }
        to
    };
    let (x, w) = (transposed(&x, images, inputs, plane), transposed(&w, outputs, channels, taps));
    let input = Planes { data: &x, steps: [plane, images * plane], is_reversed: false };
    let weight = Planes { data: &w, steps: [taps, outputs * taps], is_reversed: false };
    for (transposed, result) in run(2, &convolution, input, weight).iter().zip(&result) {
        let difference = ((*transposed).into() - (*result).into()).abs();
        assert!(difference <= tolerance * depth, "{shape} in another order");
    }
}

pub fn random(numbers: &mut TestNumbers, longest: isize) -> Case {
    let rank = numbers.below(3) + 1;
    let groups = [1, 1, 2, 3][numbers.below(4)];
    // Few and many outputs are computed by different algorithms.
    let outputs = [numbers.below(5), 8 + numbers.below(80)][numbers.below(2)];
    let (outputs, channels) = (outputs * groups, numbers.below(4));
    let mut case = Case {
        input: vec![numbers.below(4), channels * groups],
        weight: vec![outputs, channels],
        windows: Vec::new(),
        groups,
    };
    let steps = |numbers: &mut TestNumbers| [1, 1, 1, 2, 3, 4][numbers.below(6)];
    for _ in 0..rank {
        case.input.push(numbers.among(0, longest) as usize);
        case.weight.push(numbers.among(0, longest / 2 + 1) as usize);
        case.windows.push(Window {
            stride: steps(numbers),
            padding_low: numbers.among(-3, 4),
            padding_high: numbers.among(-3, 4),
            dilation: steps(numbers),
            base_dilation: steps(numbers),
        });
    }
    case
}

#[test]
fn random_shapes() {
    let mut numbers = TestNumbers(1);
    for _ in 0..500 {
        let case = random(&mut numbers, 9);
        check::<f32>(&mut numbers, &case, 1e-6);
        check::<f64>(&mut numbers, &case, 1e-14);
    }
}

#[test]
fn random_longer_shapes_of_one_axis() {
    let mut numbers = TestNumbers(2);
    for _ in 0..100 {
        let mut case = random(&mut numbers, 9);
        case.input.truncate(3);
        case.weight.truncate(3);
        case.windows.truncate(1);
        case.weight[0] = case.groups * (case.weight[0] / case.groups).min(9);
        case.input[2] = numbers.below(3000);
        case.weight[2] = numbers.below(900);
        check::<f32>(&mut numbers, &case, 1e-6);
    }
}

#[test]
fn mismatched_shapes_are_refused() {
    let plain = Window::default();
    let refused = |input: &[usize], weight: &[usize], window: Window, groups: usize| {
        Convolution::new(input, weight, &[window], groups).is_none()
    };
    assert!(!refused(&[1, 4, 5], &[6, 2, 3], plain, 2));
    assert!(refused(&[1, 4, 5], &[6, 3, 3], plain, 2));
    assert!(refused(&[1, 4, 5], &[5, 2, 3], plain, 2));
    assert!(refused(&[1, 4, 5], &[6, 4, 3], plain, 0));
    assert!(refused(&[1, 4], &[6, 4, 3], plain, 1));
    for window in [
        Window { stride: 0, ..plain },
        Window { dilation: usize::MAX, ..plain },
        Window { base_dilation: 1 << 62, ..plain },
        Window { padding_low: isize::MIN, padding_high: isize::MAX, ..plain },
        Window { padding_high: 1 << 39, ..plain },
    ] {
        assert!(refused(&[1 << 10, 4, 5], &[1 << 20, 4, 3], window, 1), "{window:?}");
    }
}

#[test]
#[should_panic(expected = "beyond")]
fn planes_lie_within_their_data() {
    let convolution = Convolution::new(&[2, 3, 4], &[5, 3, 2], &[Window::default()], 1).unwrap();
    let (x, w) = ([0f32; 23], [0f32; 30]);
    run(1, &convolution, contiguous(&x, 3, 4), contiguous(&w, 3, 2));
}
