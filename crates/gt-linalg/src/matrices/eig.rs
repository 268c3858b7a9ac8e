//! Eigenvalues and eigenvectors of general square matrices.

use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{ComputeEigenvectors, evd_cplx, evd_real, evd_scratch};
use faer::linalg::matmul::matmul;
use faer::traits::ext::ComplexFieldExt;
use faer::traits::math_utils::{eps, from_f64};
use faer::{Accum, MatMut, MatRef, Par};
use num_complex::Complex;

use super::Unsolved;
use super::balance::balance;
use super::inverse::eigenvector;
use super::layout::{columns_of, transpose};
use super::scalar::{MatrixScalar, Real, largest_part, norm, safe_factor};
use super::svd::are_numbers;

/// Writes the eigenvalues of a square matrix of `n` rows and, if requested, its right eigenvectors
/// as columns, in no particular order. As LAPACK's, eigenvectors have norm 1, and those that are
/// not real are rotated so that their largest element is real; complex eigenvalues of a real matrix
/// come in pairs, the one with the positive imaginary part first.
///
/// # Errors
/// An element is not finite, or the iteration does not converge.
pub fn eig<T: MatrixScalar>(
    a: &[T],
    n: usize,
    values: &mut [Complex<T::Real>],
    vectors: Option<&mut [Complex<T::Real>]>,
) -> Result<(), Unsolved> {
    assert!(a.len() == n * n && values.len() == n, "a square matrix");
    assert!(vectors.as_ref().is_none_or(|vectors| vectors.len() == n * n), "room for vectors");
    let largest = largest_part(a.iter().copied()).ok_or(Unsolved::NotFinite)?;
    if n == 0 {
        return Ok(());
    }
    let mut columns = columns_of(a, n, n);
    let factor = safe_factor(largest);
    if let Some(factor) = factor {
        columns.iter_mut().for_each(|x| *x = x.mul_real(factor));
    }
    let scales = balance(&mut columns, n);
    let room = if vectors.is_some() { n * n } else { 0 };
    let mut found = vec![Complex::zero(); room];
    let wanted = vectors.is_some().then_some(&mut found[..]);
    let whole: Vec<_> = columns.iter().map(|x| Complex { re: x.real(), im: x.imag() }).collect();
    if T::IS_REAL {
        let columns: Vec<T::Real> = columns.iter().map(|x| x.real()).collect();
        solve_real(&columns, values, wanted)?;
    } else {
        solve_complex(&whole, values, wanted)?;
    }
    if let Some(vectors) = vectors {
        correct(&whole, values, &mut found, T::IS_REAL)?;
        for (vector, &value) in found.chunks_exact_mut(n).zip(values.iter()) {
            for (x, scale) in vector.iter_mut().zip(&scales) {
                *x = x.mul_real(scale);
            }
            normalize(vector)?;
            if !T::IS_REAL || value.im != T::Real::zero() {
                make_real(vector);
            }
        }
        transpose(&found, n, n, vectors);
    }
    for value in values.iter_mut() {
        if let Some(factor) = factor {
            *value = Complex { re: value.re / factor, im: value.im / factor };
        }
        are_numbers(&[value.re, value.im])?;
    }
    Ok(())
}

/// Solves for a real matrix stored by columns. A complex vector is computed as two columns, its
/// real and its imaginary part.
fn solve_real<R: Real>(
    a: &[R],
    values: &mut [Complex<R>],
    vectors: Option<&mut [Complex<R>]>,
) -> Result<(), Unsolved> {
    let n = values.len();
    let (mut re, mut im) = (vec![R::zero(); n], vec![R::zero(); n]);
    let mut parts = vec![R::zero(); if vectors.is_some() { n * n } else { 0 }];
    let mut memory = memory::<R>(n, vectors.is_some());
    evd_real(
        MatRef::from_column_major_slice(a, n, n),
        DiagMut::from_slice_mut(&mut re),
        DiagMut::from_slice_mut(&mut im),
        None,
        vectors.is_some().then(|| MatMut::from_column_major_slice_mut(&mut parts, n, n)),
        Par::Seq,
        MemStack::new(&mut memory),
        Default::default(),
    )
    .map_err(|_| Unsolved::NotConverged)?;
    for (value, (&re, &im)) in values.iter_mut().zip(re.iter().zip(&im)) {
        *value = Complex { re, im };
    }
    let Some(vectors) = vectors else { return Ok(()) };
    let mut at = 0;
    while at < n {
        let width = if im[at] == R::zero() || at + 1 == n { 1 } else { 2 };
        let (parts, vectors) = (&parts[at * n..][..width * n], &mut vectors[at * n..][..width * n]);
        let (first, second) = vectors.split_at_mut(n);
        for (row, x) in first.iter_mut().enumerate() {
            let below = if width == 1 { R::zero() } else { parts[n + row] };
            *x = Complex { re: parts[row], im: if im[at] < R::zero() { -below } else { below } };
        }
        for (y, x) in second.iter_mut().zip(first) {
            *y = x.conj();
        }
        at += width;
    }
    Ok(())
}

/// Solves the problem for a complex column-major matrix.
fn solve_complex<R: Real>(
    a: &[Complex<R>],
    values: &mut [Complex<R>],
    vectors: Option<&mut [Complex<R>]>,
) -> Result<(), Unsolved> {
    let n = values.len();
    let mut memory = memory::<Complex<R>>(n, vectors.is_some());
    evd_cplx(
        MatRef::from_column_major_slice(a, n, n),
        DiagMut::from_slice_mut(values),
        None,
        vectors.map(|vectors| MatMut::from_column_major_slice_mut(vectors, n, n)),
        Par::Seq,
        MemStack::new(&mut memory),
        Default::default(),
    )
    .map_err(|_| Unsolved::NotConverged)
}

fn memory<T: MatrixScalar>(n: usize, vectors: bool) -> MemBuffer {
    let right = if vectors { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    let left = ComputeEigenvectors::No;
    MemBuffer::new(evd_scratch::<T>(n, left, right, Par::Seq, Default::default()))
}

/// Normalizes the vectors, and recomputes those that are not eigenvectors: faer divides by numbers
/// near zero for small eigenvalues, and vectors of nearly defective ones overflow. The vectors of a
/// pair are each other's conjugates.
fn correct<R: Real>(
    columns: &[Complex<R>],
    values: &[Complex<R>],
    vectors: &mut [Complex<R>],
    pairs: bool,
) -> Result<(), Unsolved> {
    let n = values.len();
    for vector in vectors.chunks_exact_mut(n) {
        if normalize(vector).is_err() {
            vector.fill(Complex::zero());
        }
    }
    let mut products = vec![Complex::zero(); n * n];
    matmul(
        MatMut::from_column_major_slice_mut(&mut products, n, n),
        Accum::Replace,
        MatRef::from_column_major_slice(columns, n, n),
        MatRef::from_column_major_slice(vectors, n, n),
        Complex::one(),
        Par::Seq,
    );
    let tolerance = eps::<R>() * from_f64::<R>(10.0 * n as f64) * norm(columns);
    for (k, (&value, product)) in values.iter().zip(products.chunks_exact_mut(n)).enumerate() {
        let (before, vector) = vectors[..(k + 1) * n].split_at_mut(k * n);
        if pairs && value.im < R::zero() && k > 0 {
            for (x, y) in vector.iter_mut().zip(&before[(k - 1) * n..]) {
                *x = y.conj();
            }
            continue;
        }
        for (product, x) in product.iter_mut().zip(vector.iter()) {
            *product -= value * *x;
        }
        let is_zero = vector.iter().all(|x| *x == Complex::zero());
        if is_zero || norm(product) > tolerance {
            eigenvector(columns, value, vector);
            normalize(vector)?;
        }
    }
    Ok(())
}

/// Scales a vector to norm 1.
fn normalize<R: Real>(vector: &mut [Complex<R>]) -> Result<(), Unsolved> {
    let largest = largest_part(vector.iter().copied()).ok_or(Unsolved::NotConverged)?;
    if largest == R::zero() {
        return Err(Unsolved::NotConverged);
    }
    if let Some(factor) = safe_factor(largest) {
        vector.iter_mut().for_each(|x| *x = x.mul_real(factor));
    }
    let inverse = R::one() / norm(vector);
    vector.iter_mut().for_each(|x| *x = x.mul_real(inverse));
    Ok(())
}

/// Rotates a vector so that its largest element is real.
fn make_real<R: Real>(vector: &mut [Complex<R>]) {
    let (mut at, mut most) = (0, R::zero());
    for (index, x) in vector.iter().enumerate() {
        let size = x.abs2();
        if size > most {
            (at, most) = (index, size);
        }
    }
    let rotation = vector[at].conj().mul_real(R::one() / most.sqrt());
    vector.iter_mut().for_each(|x| *x *= rotation);
    vector[at].im = R::zero();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrices::check::{SampleMatrix, assert_near, identity, of_rank, product, random};

    /// Checks a x = x diag(values), and that the columns of x have norm 1; returns the values.
    fn check<T: SampleMatrix>(a: &[T], n: usize) -> Vec<Complex<T::Real>> {
        let mut values = vec![Complex::zero(); n];
        let mut vectors = vec![Complex::zero(); n * n];
        eig(a, n, &mut values, Some(&mut vectors)).expect("eigenvectors");
        let whole: Vec<_> = a.iter().map(|x| Complex { re: x.real(), im: x.imag() }).collect();
        let left = product(&whole, &vectors, n, n, n);
        let right: Vec<_> = (0..n * n).map(|k| vectors[k] * values[k % n]).collect();
        let size = largest_part(a.iter().copied()).expect("elements are finite");
        let unit = |x: &[Complex<T::Real>]| -> Vec<Complex<T::Real>> {
            // The tolerance is relative to the matrix, not to eigenvalues, which may all be zero.
            let mut x = x.to_vec();
            x.push(Complex { re: size, im: T::Real::zero() });
            x
        };
        assert_near(&unit(&left), &unit(&right), 8 * n);
        for column in 0..n {
            let vector: Vec<_> = (0..n).map(|row| vectors[row * n + column]).collect();
            assert!((norm(&vector) - T::Real::one()).abs().size() < 1e-5);
            // Of several elements that are about equally large, one is real.
            let largest = vector.iter().map(|x| x.size()).fold(0.0, f64::max);
            let mut real = vector.iter().filter(|x| x.im == T::Real::zero());
            assert!(real.any(|x| x.size() > 0.999 * largest), "{vector:?}");
        }
        let mut alone = vec![Complex::zero(); n];
        eig(a, n, &mut alone, None).expect("eigenvalues");
        values
    }

    fn check_all<T: SampleMatrix>() {
        for n in [0, 1, 2, 3, 8, 40, 80] {
            check::<T>(&random(n, n, 1), n);
            check::<T>(&of_rank(n, n, n / 2 + 1), n);
            check::<T>(&identity(n), n);
            check::<T>(&vec![T::zero(); n * n], n);
            check::<T>(&vec![T::one(); n * n], n);
            // A cyclic shift of all elements, whose eigenvalues are the roots of 1.
            let turns = |k: usize| f64::from((k / n + 1) % n == k % n);
            let a: Vec<T> = (0..n * n).map(|k| T::sample(turns(k), 0.0)).collect();
            for value in check::<T>(&a, n) {
                assert!((value.abs2() - T::Real::one()).abs().size() < 1e-4);
            }
            // A Jordan block has only one eigenvector.
            let jordan = |k: usize| f64::from(k % n == k / n || k % n == k / n + 1);
            check::<T>(&(0..n * n).map(|k| T::sample(jordan(k), 0.0)).collect::<Vec<_>>(), n);
        }
    }

    #[test]
    fn eigenvectors_satisfy_their_definition() {
        check_all::<f32>();
        check_all::<f64>();
        check_all::<Complex<f32>>();
        check_all::<Complex<f64>>();
    }

    #[test]
    fn pairs_begin_with_the_positive_imaginary_part() {
        let values = check::<f64>(&random(60, 60, 4), 60);
        let mut at = 0;
        while at < 60 {
            if values[at].im == 0.0 {
                at += 1;
                continue;
            }
            assert!(values[at].im > 0.0 && values[at + 1] == values[at].conj());
            at += 2;
        }
    }

    #[test]
    fn badly_scaled_matrices_are_balanced() {
        let mut values = [Complex::zero(); 2];
        eig(&[1.0f64, 1e10, 1e-10, 1.0], 2, &mut values, None).expect("eigenvalues");
        values.sort_by(|x, y| x.re.total_cmp(&y.re));
        assert!(values[0].norm() < 1e-15 && (values[1].re - 2.0).abs() < 1e-15, "{values:?}");
        for factor in [1e-42f32, 1e-30, 1e30, 1e38] {
            let a = [2.0 * factor, factor, factor, 2.0 * factor];
            let mut values = [Complex::zero(); 2];
            eig(&a, 2, &mut values, None).expect("eigenvalues");
            let sum = values[0].re / factor + values[1].re / factor;
            assert!((sum - 4.0).abs() < 0.01, "{values:?}");
        }
    }

    #[test]
    fn small_pairs_beside_large_ones_have_vectors() {
        let n = 40;
        let grade = |k: usize| 0.3f64.powi((k % n) as i32);
        let a: Vec<f64> =
            random::<f64>(n, n, 7).iter().enumerate().map(|(k, x)| x * grade(k)).collect();
        let values = check::<f64>(&a, n);
        assert!(values.iter().any(|value| value.im != 0.0 && value.norm() < 1e-8));
    }

    #[test]
    fn pairs_that_are_all_but_equal_have_vectors() {
        for a in [[2.0f32, -2.0, 2.0, -2.0], [0.0, -1.0, 1.0, 2.0], [-1.0, -1.0, 1.0, 1.0]] {
            check::<f32>(&a, 2);
            check::<f64>(&a.map(f64::from), 2);
        }
    }

    #[test]
    fn non_finite_elements_are_errors() {
        let mut values = [Complex::zero(); 2];
        let found = eig(&[1.0, f64::NAN, 1.0, 1.0], 2, &mut values, None);
        assert_eq!(found, Err(Unsolved::NotFinite));
    }
}
