//! Rejection samplers. A draw depends only on the seed, the instruction, the element and the
//! attempt. They compute in float64, with functions that have the same results on every machine.

use std::mem::MaybeUninit;

use gt_ir::draws;
use gt_ir::instruction::Operands;
use gt_ir::operation::ints;
use gt_ir::philox::RandomStream;
use gt_ir::{Attributes, DType, Meta};
use gt_worker::EngineError;
use libm::{lgamma, log, log1p};

use crate::cast;
use crate::random::{DrawPart, stream};
use crate::table::tensor;
use crate::tensor::Tensor;
use crate::threads::Threads;
use crate::uninit::Uninit;

/// Elements that one thread draws at a time.
const PIECE: usize = 1 << 10;

/// The uniform numbers of successive attempts at one element.
struct Attempts {
    stream: RandomStream,
    element: u64,
    next: u16,
}

impl Attempts {
    /// Returns two numbers of `[0, 1)`.
    fn uniforms(&mut self) -> [f64; 2] {
        let words = self.stream.attempt(self.element, self.next);
        self.next = self.next.wrapping_add(1);
        draws::uniforms_f64(words)
    }
}

/// Draws a number for each element; the operands after seed and instruction are the `N` parameters
/// of the distribution.
fn sampled<const N: usize>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
    draw: impl Fn([f64; N], &mut Attempts) -> f64 + Sync,
) -> Result<Tensor, EngineError> {
    let stream = stream(&operands)?;
    let part = DrawPart::new(&output.shape, ints(attributes, 0));
    let mut given = Vec::with_capacity(N);
    for index in 2..2 + N {
        let operand = tensor(&mut operands, index)?;
        given.push(cast::to(threads, operand, DType::F64)?.contiguous()?);
    }
    let given: Vec<&[f64]> = given.iter().map(|tensor| tensor.as_slice()).collect();
    let mut out = Uninit::new(Meta::new(DType::F64, output.shape))?;
    threads.for_each_part(out.slots::<f64>(), PIECE, |piece, slots: &mut [MaybeUninit<f64>]| {
        for (slot, index) in slots.iter_mut().zip(piece * PIECE..) {
            let parameters = std::array::from_fn(|of| given[of][index]);
            let (element, _) = part.run(index);
            slot.write(draw(parameters, &mut Attempts { stream, element, next: 0 }));
        }
    });
    // SAFETY: every element has been written.
    cast::to(threads, unsafe { out.finish() }, output.dtype)
}

/// Draws from Poisson distributions with the rates in operand 2.
pub fn poisson(
    threads: &mut Threads,
    operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    sampled(threads, operands, attributes, output, |[rate], attempts| {
        if rate == 0.0 || !rate.is_finite() {
            return rate;
        }
        match rate {
            10.0.. => poisson_by_rejection(rate, attempts),
            0.0.. => poisson_by_products(rate, attempts),
            _ => f64::NAN,
        }
    })
}

/// Counts the uniform numbers whose product stays above e^-rate (Knuth, The Art of Computer
/// Programming, 3.4.1).
fn poisson_by_products(rate: f64, attempts: &mut Attempts) -> f64 {
    let end = libm::exp(-rate);
    let (mut product, mut count) = (1.0, 0.0);
    loop {
        for uniform in attempts.uniforms() {
            product *= uniform;
            if product <= end {
                return count;
            }
            count += 1.0;
        }
    }
}

/// Draws by algorithm PTRS of Hörmann, "The Transformed Rejection Method for Generating Poisson
/// Random Variables" (1993).
fn poisson_by_rejection(rate: f64, attempts: &mut Attempts) -> f64 {
    let b = 0.931 + 2.53 * rate.sqrt();
    let a = -0.059 + 0.024_83 * b;
    let scale = 1.1239 + 1.1328 / (b - 3.4);
    let surely = 0.9277 - 3.6224 / (b - 2.0);
    loop {
        let [u, v] = attempts.uniforms();
        let u = u - 0.5;
        let from_end = 0.5 - u.abs();
        let k = ((2.0 * a / from_end + b) * u + rate + 0.43).floor();
        if from_end >= 0.07 && v <= surely {
            return k;
        }
        if k < 0.0 || (from_end < 0.013 && v > from_end) {
            continue;
        }
        let height = log(v) + log(scale) - log(a / (from_end * from_end) + b);
        if height <= k * log(rate) - rate - lgamma(k + 1.0) {
            return k;
        }
    }
}

/// Draws from binomial distributions with the counts in operand 2 and the probabilities in operand
/// 3.
pub fn binomial(
    threads: &mut Threads,
    operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    sampled(threads, operands, attributes, output, |[count, chance], attempts| {
        if count.is_nan() || chance.is_nan() {
            return f64::NAN;
        }
        if count <= 0.0 || chance <= 0.0 {
            return 0.0;
        }
        if chance >= 1.0 || count.is_infinite() {
            return count;
        }
        let n = count.floor();
        if chance <= 0.5 {
            successes(n, chance, attempts)
        } else {
            n - successes(n, 1.0 - chance, attempts)
        }
    })
}

/// Draws the number of successes in `n` trials of probability `p`, at most 1/2.
fn successes(n: f64, p: f64, attempts: &mut Attempts) -> f64 {
    if n * p >= 10.0 {
        return binomial_by_rejection(n, p, attempts);
    }
    // The distances between successes are geometric (Devroye, Non-Uniform Random Variate
    // Generation, X.4.3).
    let rate = log1p(-p);
    let (mut trials, mut count) = (0.0, 0.0);
    loop {
        for uniform in attempts.uniforms() {
            trials += (log(uniform) / rate).ceil();
            if trials > n {
                return count;
            }
            count += 1.0;
        }
    }
}

/// Draws by algorithm BTRS of Hörmann, "The Generation of Binomial Random Variates" (1993).
fn binomial_by_rejection(n: f64, p: f64, attempts: &mut Attempts) -> f64 {
    let deviation = (n * p * (1.0 - p)).sqrt();
    let b = 1.15 + 2.53 * deviation;
    let a = -0.0873 + 0.0248 * b + 0.01 * p;
    let surely = 0.92 - 4.2 / b;
    let odds = log(p / (1.0 - p));
    let scale = (2.83 + 5.1 / b) * deviation;
    let mode = ((n + 1.0) * p).floor();
    let most = lgamma(mode + 1.0) + lgamma(n - mode + 1.0);
    loop {
        let [u, v] = attempts.uniforms();
        let u = u - 0.5;
        let from_end = 0.5 - u.abs();
        let k = ((2.0 * a / from_end + b) * u + n * p + 0.5).floor();
        if !(0.0..=n).contains(&k) {
            continue;
        }
        if from_end >= 0.07 && v <= surely {
            return k;
        }
        let height = log(v * scale / (a / (from_end * from_end) + b));
        if height <= most - lgamma(k + 1.0) - lgamma(n - k + 1.0) + (k - mode) * odds {
            return k;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks mean and variance of many draws; the mean within five standard errors.
    fn check(name: &str, mean: f64, variance: f64, draw: impl Fn(&mut Attempts) -> f64) {
        let n = 40_000u64;
        let drawn: Vec<f64> = (0..n)
            .map(|element| {
                draw(&mut Attempts { stream: RandomStream::new(3, 4), element, next: 0 })
            })
            .collect();
        let average = drawn.iter().sum::<f64>() / n as f64;
        let spread = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
        let error = (variance / n as f64).sqrt();
        assert!((average - mean).abs() < 5.0 * error, "{name}: mean {average}, not {mean}");
        assert!(
            (spread / variance - 1.0).abs() < 0.06,
            "{name}: variance {spread}, not {variance}"
        );
    }

    #[test]
    fn poisson_has_the_expected_moments() {
        for rate in [0.3, 4.0, 9.99] {
            check("by products", rate, rate, |attempts| poisson_by_products(rate, attempts));
        }
        for rate in [10.0, 50.0, 1e6] {
            check("by rejection", rate, rate, |attempts| poisson_by_rejection(rate, attempts));
        }
    }

    #[test]
    fn binomial_has_the_expected_moments() {
        for (n, p) in [(1.0, 0.5), (20.0, 0.1), (40.0, 0.3), (1000.0, 0.5), (1e6, 0.01)] {
            check("binomial", n * p, n * p * (1.0 - p), |attempts| successes(n, p, attempts));
        }
    }
}
