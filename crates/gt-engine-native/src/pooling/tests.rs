//! Compares pooling with plain loops, on random shapes.

use super::*;

/// Returns a pseudo-random number below `end`.
fn below(state: &mut u64, end: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % end
}

/// Returns, for each output, the indices of the inputs that its window sees.
fn windows(pooling: &Pooling) -> Vec<Vec<usize>> {
    let [z, y, x] = pooling.axes;
    let mut all = Vec::new();
    for (i, j) in pairs(z.output, y.output) {
        for k in 0..x.output {
            let mut inside = Vec::new();
            for (a, b) in pairs(z.window.kernel, y.window.kernel) {
                for c in 0..x.window.kernel {
                    let at = [(z, i, a), (y, j, b), (x, k, c)].map(|(axis, output, tap)| {
                        let PoolWindow { stride, padding, dilation, .. } = axis.window;
                        (output * stride + tap * dilation) as isize - padding as isize
                    });
                    let is_inside =
                        |(at, axis): (&isize, Axis)| (0..axis.input as isize).contains(at);
                    if at.iter().zip(pooling.axes).all(is_inside) {
                        let [a, b, c] = at.map(|at| at as usize);
                        inside.push((a * y.input + b) * x.input + c);
                    }
                }
            }
            all.push(inside);
        }
    }
    all
}

fn check(state: &mut u64, threads: &mut Threads, longest: usize, dilates: bool) {
    let rank = below(state, 3) + 1;
    let mut among = |from: usize, to: usize| from + below(state, to - from + 1);
    let input: Vec<usize> = (0..rank).map(|_| among(1, longest)).collect();
    let output: Vec<usize> = (0..rank).map(|_| among(0, longest)).collect();
    let window = |among: &mut dyn FnMut(usize, usize) -> usize| PoolWindow {
        kernel: among(1, 4),
        stride: among(1, 3),
        padding: among(0, 2),
        dilation: if dilates { among(1, 3) } else { 1 },
    };
    let all: Vec<PoolWindow> = (0..rank).map(|_| window(&mut among)).collect();
    let planes = among(0, 12);
    let pooling = Pooling::new(&input, &output, &all).unwrap();
    let value = |state: &mut u64| match below(state, 40) {
        0 => f32::NAN,
        1 => f32::NEG_INFINITY,
        other => other as f32,
    };
    let input: Vec<f32> = (0..planes * pooling.input()).map(|_| value(state)).collect();
    let count = planes * pooling.output();
    let mut values = vec![MaybeUninit::new(0.0); count];
    let mut indices = vec![MaybeUninit::new(0); count];
    let read = |values: &[MaybeUninit<f32>]| -> Vec<f32> {
        // SAFETY: initialized when it was created.
        values.iter().map(|x| unsafe { x.assume_init() }).collect()
    };
    largest(threads, &pooling, &input, &mut values, &mut indices);
    let windows = windows(&pooling);
    for (index, value) in read(&values).iter().enumerate() {
        let (plane, window) = (index / windows.len(), &windows[index % windows.len()]);
        let plane = &input[plane * pooling.input()..];
        let mut best = (f32::NEG_INFINITY, window.first().copied().unwrap_or(0));
        for at in window {
            if plane[*at] > best.0 || plane[*at].is_nan() {
                best = (plane[*at], *at);
            }
        }
        assert_eq!(value.to_bits(), best.0.to_bits(), "{pooling:?}");
        // SAFETY: initialized when it was created.
        assert_eq!(unsafe { indices[index].assume_init() }, best.1 as i64, "{pooling:?}");
    }
}

#[test]
fn random_shapes() {
    let mut state = 1;
    for count in 0..600 {
        let mut threads = Threads::new(count % 2 + 1);
        check(&mut state, &mut threads, 8, count % 3 == 0);
    }
    for _ in 0..5 {
        check(&mut state, &mut Threads::new(2), 60, true);
    }
}

#[test]
fn mismatched_shapes_are_refused() {
    let window = PoolWindow { kernel: 2, stride: 2, padding: 0, dilation: 1 };
    assert!(Pooling::new(&[4], &[2], &[window]).is_some());
    assert!(Pooling::new(&[4, 4], &[2], &[window]).is_none());
    assert!(Pooling::new(&[4], &[2], &[PoolWindow { stride: 0, ..window }]).is_none());
    assert!(Pooling::new(&[4], &[2], &[PoolWindow { dilation: 1 << 62, ..window }]).is_none());
    assert!(Pooling::new(&[4], &[2], &[PoolWindow { padding: usize::MAX, ..window }]).is_none());
}
