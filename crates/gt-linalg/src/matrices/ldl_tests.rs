use num_complex::Complex;

use super::*;
use crate::matrices::check::{
    SampleMatrix, assert_near, identity, of_rank, product, random, transpose,
};

/// Returns the product of the factors: P1 L1 P2 L2 ... D ... L2^H P2 L1^H P1.
fn rebuilt<T: SampleMatrix>(packed: &[T], n: usize, hermitian: bool, pivots: &[i32]) -> Vec<T> {
    let conjugate_if_hermitian = |x: T| if hermitian { x.conj() } else { x };
    let (mut diagonal, mut lower) = (vec![T::zero(); n * n], identity::<T>(n));
    let mut k = 0;
    while k < n {
        let width = if pivots[k] > 0 { 1 } else { 2 };
        let mut columns = identity::<T>(n);
        for column in k..k + width {
            diagonal[column * n + column] = packed[column * n + column];
            for row in k + width..n {
                columns[row * n + column] = packed[row * n + column];
            }
        }
        if width == 2 {
            assert_eq!(pivots[k], pivots[k + 1]);
            diagonal[(k + 1) * n + k] = packed[(k + 1) * n + k];
            diagonal[k * n + k + 1] = conjugate_if_hermitian(packed[(k + 1) * n + k]);
        }
        let (row, other) = (k + width - 1, pivots[k].unsigned_abs() as usize - 1);
        let mut exchange = identity::<T>(n);
        (0..n).for_each(|column| exchange.swap(row * n + column, other * n + column));
        lower = product(&product(&lower, &exchange, n, n, n), &columns, n, n, n);
        k += width;
    }
    let right: Vec<T> = transpose(&lower, n, n).into_iter().map(conjugate_if_hermitian).collect();
    product(&product(&lower, &diagonal, n, n, n), &right, n, n, n)
}

fn check<T: SampleMatrix>(mut a: Vec<T>, n: usize, hermitian: bool) {
    for row in 0..n {
        for column in row..n {
            let x = a[column * n + row];
            a[row * n + column] = if hermitian { x.conj() } else { x };
        }
        if hermitian {
            a[row * n + row] = of_real(a[row * n + row].real());
        }
    }
    let (mut packed, mut pivots) = (a.clone(), vec![0; n]);
    // The part above the diagonal is not read.
    (0..n).for_each(|row| packed[row * n + row + 1..][..n - row - 1].fill(T::nan()));
    ldl(&mut packed, n, hermitian, &mut pivots);
    assert_near(&rebuilt(&packed, n, hermitian, &pivots), &a, 4 * n);
}

fn check_all<T: SampleMatrix>() {
    for n in [0, 1, 2, 3, 8, 33, 60] {
        for hermitian in [false, true] {
            check::<T>(random(n, n, 1), n, hermitian);
            let mut hollow = random::<T>(n, n, 2);
            (0..n).for_each(|k| hollow[k * n + k] = T::zero());
            check(hollow, n, hermitian);
            check::<T>(identity(n), n, hermitian);
            let half = of_rank::<T>(n, 1, 1);
            check(product(&half, &transpose(&half, n, 1), n, 1, n), n, false);
        }
    }
}

#[test]
fn factors_multiply_to_the_matrix() {
    check_all::<f32>();
    check_all::<f64>();
    check_all::<Complex<f32>>();
    check_all::<Complex<f64>>();
}

#[test]
fn zero_blocks_are_reported() {
    let (mut zeros, mut pivots) = ([0f32; 9], [0; 3]);
    assert_eq!(ldl(&mut zeros, 3, false, &mut pivots), 1);
    assert!(zeros == [0.0; 9] && pivots == [1, 2, 3]);
}

#[test]
fn packed_as_lapack_does() {
    // The values of torch.linalg.ldl_factor.
    let mut a = [1.0f64, 4.0, 3.0, 4.0, 1.0, 2.0, 3.0, 2.0, -1.0];
    let mut pivots = [0; 3];
    assert_eq!(ldl(&mut a, 3, false, &mut pivots), 0);
    assert_eq!(pivots, [-2, -2, 3]);
    assert_near(&a, &[1.0, 0.0, 0.0, 4.0, 1.0, 0.0, 1.0 / 3.0, 2.0 / 3.0, -10.0 / 3.0], 3);
    let c = |re: f64, im: f64| Complex::new(re, im);
    let o = c(0.0, 0.0);
    let (one, two, three) = (c(1.0, 0.0), c(2.0, 0.0), c(3.0, 0.0));
    let mut a = [o, o, o, c(0.0, -1.0), three, o, two, one, -one];
    assert_eq!(ldl(&mut a, 3, true, &mut pivots), 0);
    assert_eq!(pivots, [-3, -3, 3]);
    let last = [c(0.5, -0.25), c(0.0, -0.5), c(2.75, 0.0)];
    assert_near(&a, &[o, o, o, two, -one, o, last[0], last[1], last[2]], 3);
    let mut a = [o, o, o, c(0.0, 1.0), three, o, two, one, -one];
    assert_eq!(ldl(&mut a, 3, false, &mut pivots), 0);
    let last = [c(0.5, 0.25), c(0.0, 0.5), c(3.25, -1.0)];
    assert_near(&a, &[o, o, o, two, -one, o, last[0], last[1], last[2]], 3);
}
