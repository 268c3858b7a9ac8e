//! Discrete Fourier transforms of rows, by rustfft and realfft.
//!
//! [`Plans`] caches a plan for each length, direction and type. A plan can run on several threads
//! at once, each with its own rows. No transform divides by the length.

use std::any::{Any, TypeId};
use std::sync::Arc;

use num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustc_hash::FxHashMap;
use rustfft::{Fft, FftDirection, FftNum, FftPlanner};

/// The most plans that are cached: a plan takes about as much memory as a row.
const KEPT: usize = 64;

/// A float that can be transformed, with the compiled planners of its transforms.
pub trait FourierFloat: FftNum {
    /// Plans the transform of `n` complex numbers.
    fn plan_complex(n: usize, direction: FftDirection) -> Arc<dyn Fft<Self>>;

    /// Plans the transform of `n` real numbers.
    fn plan_real_to_complex(n: usize) -> Arc<dyn RealToComplex<Self>>;

    /// Plans the inverse transform to `n` real numbers.
    fn plan_complex_to_real(n: usize) -> Arc<dyn ComplexToReal<Self>>;

    /// Multiplies each number by `factor`, which is first rounded to the type.
    fn scale(row: &mut [Self], factor: f64);
}

macro_rules! floats {
    ($($float:ty),*) => { $(
        impl FourierFloat for $float {
            fn plan_complex(n: usize, direction: FftDirection) -> Arc<dyn Fft<Self>> {
                FftPlanner::new().plan_fft(n, direction)
            }

            fn plan_real_to_complex(n: usize) -> Arc<dyn RealToComplex<Self>> {
                RealFftPlanner::new().plan_fft_forward(n)
            }

            fn plan_complex_to_real(n: usize) -> Arc<dyn ComplexToReal<Self>> {
                RealFftPlanner::new().plan_fft_inverse(n)
            }

            fn scale(row: &mut [Self], factor: f64) {
                let factor = factor as $float;
                row.iter_mut().for_each(|x| *x *= factor);
            }
        }
    )* };
}

floats!(f32, f64);

/// A cache of plans.
#[derive(Default)]
pub struct Plans {
    planned: FxHashMap<(TypeId, TransformKind, usize), Box<dyn Any + Send>>,
}

/// The kinds of transforms.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum TransformKind {
    Complex { inverse: bool },
    FromReal,
    ToReal,
}

impl Plans {
    /// Creates an empty cache of plans.
    pub fn new() -> Plans {
        Plans::default()
    }

    /// Returns the transform of `n` complex numbers to as many, with exp(-2 pi i j k / n) or, if
    /// `inverse`, with exp(2 pi i j k / n).
    pub fn complex<T: FourierFloat>(&mut self, n: usize, inverse: bool) -> ComplexPlan<T> {
        self.plan(TransformKind::Complex { inverse }, n, || {
            let direction = if inverse { FftDirection::Inverse } else { FftDirection::Forward };
            ComplexPlan(T::plan_complex(n, direction))
        })
    }

    /// Returns the transform of `n` real numbers to the first n / 2 + 1 complex ones; the others
    /// are the conjugates of these.
    pub fn real_to_complex<T: FourierFloat>(&mut self, n: usize) -> FromRealPlan<T> {
        self.plan(TransformKind::FromReal, n, || FromRealPlan(T::plan_real_to_complex(n)))
    }

    /// Returns the inverse transform of n / 2 + 1 complex numbers to `n` real ones.
    pub fn complex_to_real<T: FourierFloat>(&mut self, n: usize) -> ToRealPlan<T> {
        self.plan(TransformKind::ToReal, n, || ToRealPlan(T::plan_complex_to_real(n)))
    }

    fn plan<P: Clone + Send + 'static>(
        &mut self,
        kind: TransformKind,
        n: usize,
        new: impl Fn() -> P,
    ) -> P {
        let key = (TypeId::of::<P>(), kind, n);
        if self.planned.len() >= KEPT && !self.planned.contains_key(&key) {
            self.planned.clear();
        }
        let plan = self.planned.entry(key).or_insert_with(|| Box::new(new()));
        plan.downcast_ref::<P>().expect("a plan of the key's type").clone()
    }
}

/// A plan for transforms of complex numbers.
#[derive(Clone)]
pub struct ComplexPlan<T>(Arc<dyn Fft<T>>);

impl<T: FourierFloat> ComplexPlan<T> {
    /// Writes the transform of each row.
    ///
    /// # Panics
    /// The slices are not whole rows, or not equally many.
    pub fn run(&self, rows: &[Complex<T>], out: &mut [Complex<T>]) {
        if rows.is_empty() {
            return;
        }
        let zero = Complex { re: T::zero(), im: T::zero() };
        let mut scratch = vec![zero; self.0.get_immutable_scratch_len()];
        self.0.process_immutable_with_scratch(rows, out, &mut scratch);
    }
}

/// A plan for transforms of real numbers to complex numbers.
#[derive(Clone)]
pub struct FromRealPlan<T>(Arc<dyn RealToComplex<T>>);

impl<T: FourierFloat> FromRealPlan<T> {
    /// Writes the transform of each row.
    ///
    /// # Panics
    /// The slices are not whole rows, or not equally many.
    pub fn run(&self, rows: &[T], out: &mut [Complex<T>]) {
        let (n, half) = (self.0.len(), self.0.complex_len());
        assert!(rows.len().is_multiple_of(n) && out.len() == rows.len() / n * half, "whole rows");
        let (mut row, mut scratch) = (self.0.make_input_vec(), self.0.make_scratch_vec());
        for (from, to) in rows.chunks_exact(n).zip(out.chunks_exact_mut(half)) {
            row.copy_from_slice(from);
            self.0
                .process_with_scratch(&mut row, to, &mut scratch)
                .expect("slices have the lengths of the plan");
        }
    }
}

/// A plan for transforms of complex numbers to real numbers.
#[derive(Clone)]
pub struct ToRealPlan<T>(Arc<dyn ComplexToReal<T>>);

impl<T: FourierFloat> ToRealPlan<T> {
    /// Writes the transform of each row. The imaginary part of the first number is ignored, and so
    /// is that of the last if `n` is even.
    ///
    /// # Panics
    /// The slices are not whole rows, or not equally many.
    pub fn run(&self, rows: &[Complex<T>], out: &mut [T]) {
        let (n, half) = (self.0.len(), self.0.complex_len());
        assert!(
            rows.len().is_multiple_of(half) && out.len() == rows.len() / half * n,
            "whole rows"
        );
        let (mut row, mut scratch) = (self.0.make_input_vec(), self.0.make_scratch_vec());
        for (from, to) in rows.chunks_exact(half).zip(out.chunks_exact_mut(n)) {
            row.copy_from_slice(from);
            row[0].im = T::zero();
            if n.is_multiple_of(2) {
                row[half - 1].im = T::zero();
            }
            self.0
                .process_with_scratch(&mut row, to, &mut scratch)
                .expect("slices have the lengths of the plan");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTHS: [usize; 14] = [1, 2, 3, 4, 5, 7, 12, 16, 31, 97, 100, 128, 257, 1009];

    fn close(x: Complex<f64>, y: Complex<f64>, n: usize, digits: f64) -> bool {
        (x - y).norm() <= digits * n as f64
    }

    fn numbers(count: usize) -> Vec<Complex<f64>> {
        (0..count).map(|k| k as f64 + 1.0).map(|x| Complex::new(x.sin(), (3.7 * x).cos())).collect()
    }

    /// Computes the transform by its definition.
    fn defined(row: &[Complex<f64>], sign: f64) -> Vec<Complex<f64>> {
        let n = row.len();
        let root =
            |k: usize| Complex::cis(sign * std::f64::consts::TAU * (k % n) as f64 / n as f64);
        (0..n).map(|k| row.iter().enumerate().map(|(j, x)| x * root(j * k)).sum()).collect()
    }

    #[test]
    fn complex_rows_are_transformed_as_defined() {
        let mut plans = Plans::new();
        for n in LENGTHS {
            for (inverse, sign) in [(false, -1.0), (true, 1.0)] {
                let rows = numbers(3 * n);
                let expected: Vec<_> = rows.chunks(n).flat_map(|row| defined(row, sign)).collect();
                let mut double = rows.clone();
                plans.complex(n, inverse).run(&rows, &mut double);
                let rows: Vec<_> =
                    rows.iter().map(|x| Complex::new(x.re as f32, x.im as f32)).collect();
                let mut single = rows.clone();
                plans.complex(n, inverse).run(&rows, &mut single);
                for (k, &expected) in expected.iter().enumerate() {
                    assert!(close(double[k], expected, n, 1e-14), "{n} {k}");
                    let single = Complex::new(single[k].re.into(), single[k].im.into());
                    assert!(close(single, expected, n, 2e-6), "{n} {k}");
                }
            }
        }
    }

    #[test]
    fn real_rows_have_half_of_the_transform() {
        let mut plans = Plans::new();
        for n in LENGTHS {
            let half = n / 2 + 1;
            let rows: Vec<f64> = numbers(3 * n).iter().map(|x| x.re).collect();
            let mut out = vec![Complex::default(); 3 * half];
            plans.real_to_complex(n).run(&rows, &mut out);
            for (row, out) in rows.chunks(n).zip(out.chunks(half)) {
                let row: Vec<_> = row.iter().map(|&x| Complex::new(x, 0.0)).collect();
                let mut expected = defined(&row, -1.0).into_iter().zip(out);
                assert!(expected.all(|(x, &y)| close(x, y, n, 1e-14)), "{n}");
            }
            // The imaginary parts that are ignored.
            out[0].im = 5.0;
            if n.is_multiple_of(2) {
                out[half - 1].im = 7.0;
            }
            let mut back = vec![0.0; 3 * n];
            plans.complex_to_real(n).run(&out, &mut back);
            for (x, y) in back.iter().zip(&rows) {
                assert!((x / n as f64 - y).abs() < 1e-13, "{n}: {x} for {y}");
            }
        }
    }

    #[test]
    fn empty_inputs_are_accepted() {
        let mut plans = Plans::new();
        plans.complex::<f32>(4, false).run(&[], &mut []);
        plans.complex::<f32>(0, false).run(&[], &mut []);
        plans.real_to_complex::<f32>(4).run(&[], &mut []);
        plans.complex_to_real::<f32>(4).run(&[], &mut []);
    }

    #[test]
    fn plans_are_cached_up_to_a_limit() {
        let mut plans = Plans::new();
        let first = plans.complex::<f32>(64, false);
        assert!(Arc::ptr_eq(&first.0, &plans.complex::<f32>(64, false).0));
        assert!(!Arc::ptr_eq(&first.0, &plans.complex::<f32>(64, true).0));
        (1..1000).for_each(|n| drop(plans.complex::<f64>(n, false)));
        assert!(plans.planned.len() <= KEPT);
    }
}
