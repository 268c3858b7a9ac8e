//! Tests of the gradients, which are convolutions, too.

use super::tests::{Case, TestNumbers, check, contiguous, random, run};
use super::*;

/// Checks a convolution of images with a symmetric window, and both of its gradients.
fn check_all_three(input: [usize; 4], weight: [usize; 4], window: Window, groups: usize) {
    let mut numbers = TestNumbers(3);
    let case = |input: &[usize], weight: &[usize], windows: [Window; 2], groups| Case {
        input: input.to_vec(),
        weight: weight.to_vec(),
        windows: windows.to_vec(),
        groups,
    };
    let forward = case(&input, &weight, [window; 2], groups);
    check::<f32>(&mut numbers, &forward, 1e-6);
    let convolution = Convolution::new(&input, &weight, &[window; 2], groups).unwrap();
    let [_, height, width] = convolution.output;
    let [_, channels, kernel_height, kernel_width] = weight;
    let gradients = [input[0], weight[0], height, width];
    let transposed = [channels * groups, weight[0] / groups, kernel_height, kernel_width];
    let windows = [2, 3].map(|axis| window.for_input(input[axis], weight[axis]));
    let gradient = Convolution::new(&gradients, &transposed, &windows, groups).unwrap();
    assert_eq!(gradient.output[1..], input[2..]);
    check::<f32>(&mut numbers, &case(&gradients, &transposed, windows, groups), 1e-6);
    let inputs = [channels, groups * input[0], input[2], input[3]];
    let gradients = [weight[0], input[0], height, width];
    let windows = [2, 3].map(|axis| window.for_weight(input[axis], weight[axis]));
    let gradient = Convolution::new(&inputs, &gradients, &windows, groups).unwrap();
    assert_eq!(gradient.output[1..], weight[2..]);
    check::<f32>(&mut numbers, &case(&inputs, &gradients, windows, groups), 1e-6);
    check::<f64>(&mut numbers, &case(&inputs, &gradients, windows, groups), 1e-14);
}

/// Returns the sum of products of two tensors.
fn product(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn gradients_satisfy_the_adjoint_identity() {
    let mut numbers = TestNumbers(4);
    for _ in 0..200 {
        let mut case = random(&mut numbers, 7);
        case.groups = 1;
        case.weight[1] = case.input[1];
        let convolution = Convolution::new(&case.input, &case.weight, &case.windows, 1).unwrap();
        let Convolution { batch, channels, outputs, .. } = convolution;
        let planes = |lengths: &[usize; 3]| lengths.iter().product::<usize>();
        let (plane, taps) = (planes(&convolution.input), planes(&convolution.kernel));
        let pixels = planes(&convolution.output);
        let x: Vec<f64> = numbers.values(batch * channels * plane);
        let w: Vec<f64> = numbers.values(outputs * channels * taps);
        let gradient: Vec<f64> = numbers.values(batch * outputs * pixels);
        let (xs, ws) = (contiguous(&x, channels, plane), contiguous(&w, channels, taps));
        let y = run(1, &convolution, xs, ws);
        let rank = case.windows.len();
        let lengths = |first: usize, second: usize, spatial: &[usize]| {
            [&[first, second], &spatial[spatial.len() - rank..]].concat()
        };
        let windows = |of: &dyn Fn(&Window, usize, usize) -> Window| -> Vec<Window> {
            let all = case.windows.iter().zip(&case.input[2..]).zip(&case.weight[2..]);
            all.map(|((window, input), kernel)| of(window, *input, *kernel)).collect()
        };
        // The convolution is linear in both operands: the product of the output with its gradient
        // equals the product of the input with its gradient, and that of the weight with its
        // gradient.
        let expected = product(&y, &gradient);
        let reversed: Vec<f64> =
            w.chunks(taps.max(1)).flat_map(|w| w.iter().rev().copied()).collect();
        let for_input = Convolution::new(
            &lengths(batch, outputs, &convolution.output),
            &lengths(channels, outputs, &convolution.kernel),
            &windows(&Window::for_input),
            1,
        );
        let transposed =
            Planes { data: &reversed, steps: [taps, channels * taps], is_reversed: false };
        let gradients = contiguous(&gradient, outputs, pixels);
        let result = run(1, &for_input.unwrap(), gradients, transposed);
        let transposed = Planes { data: &w, is_reversed: true, ..transposed };
        for (reversed, result) in
            run(2, &for_input.unwrap(), gradients, transposed).iter().zip(&result)
        {
            assert!((reversed - result).abs() < 1e-9, "{:?} reversed", case.windows);
        }
        assert!((product(&x, &result) - expected).abs() < 1e-9, "{:?}", case.windows);
        let for_weight = Convolution::new(
            &lengths(channels, batch, &convolution.input),
            &lengths(outputs, batch, &convolution.output),
            &windows(&Window::for_weight),
            1,
        );
        let transposed = Planes { data: &x, steps: [plane, channels * plane], is_reversed: false };
        let gradients =
            Planes { data: &gradient, steps: [pixels, outputs * pixels], is_reversed: false };
        let result = run(1, &for_weight.unwrap(), transposed, gradients);
        let mut weight = Vec::new();
        for (output, channel) in pairs(outputs, channels) {
            weight.extend_from_slice(&result[(channel * outputs + output) * taps..][..taps]);
        }
        assert!((product(&w, &weight) - expected).abs() < 1e-9, "{:?}", case.windows);
    }
}

#[test]
fn larger_shapes_and_their_gradients() {
    let padded = |padding: isize| Window {
        padding_low: padding,
        padding_high: padding,
        ..Window::default()
    };
    let strided = |padding: isize, stride: usize| Window { stride, ..padded(padding) };
    check_all_three([2, 20, 28, 28], [24, 20, 3, 3], padded(1), 1);
    check_all_three([3, 64, 7, 7], [70, 64, 3, 3], padded(1), 1);
    check_all_three([2, 16, 24, 24], [32, 16, 1, 1], padded(0), 1);
    check_all_three([2, 16, 25, 25], [32, 16, 1, 1], strided(0, 2), 1);
    check_all_three([2, 3, 40, 40], [20, 3, 7, 7], strided(3, 2), 1);
    check_all_three([2, 32, 19, 19], [32, 8, 3, 3], strided(1, 2), 4);
    check_all_three([2, 24, 33, 33], [24, 1, 3, 3], padded(1), 24);
    check_all_three([2, 24, 33, 33], [48, 1, 5, 5], strided(2, 2), 24);
    check_all_three([5, 30, 6, 6], [40, 30, 6, 6], padded(0), 1);
    check_all_three([2, 6, 50, 50], [8, 6, 3, 3], Window { dilation: 3, ..padded(2) }, 1);
    check_all_three([2, 100, 7, 7], [300, 100, 3, 3], padded(1), 1);
    check_all_three([1, 600, 9, 9], [6, 600, 5, 5], padded(2), 1);
}
