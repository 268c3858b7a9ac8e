//! Solutions of systems whose matrix has been factored by [`ldl`](super::ldl()).

use faer::traits::ext::ComplexFieldExt;

use super::scalar::MatrixScalar;

/// Replaces `b`, of `n` rows, by the solution x of a x = b, where `packed` and `pivots` are the
/// factors of a. As LAPACK's sytrs or hetrs.
///
/// Pivots out of range are ignored.
pub fn ldl_solve<T: MatrixScalar>(
    packed: &[T],
    n: usize,
    hermitian: bool,
    pivots: &[i32],
    b: &mut [T],
) {
    assert!(packed.len() == n * n && pivots.len() == n, "the factors of a square matrix");
    if n == 0 || b.is_empty() {
        return;
    }
    let columns = b.len() / n;
    let mut system = System { packed, n, columns, hermitian: hermitian && !T::IS_REAL, b };
    let blocks = blocks(pivots);
    for &block in &blocks {
        system.exchange(block);
        system.eliminate(block);
    }
    for &block in &blocks {
        system.divide(block);
    }
    for &block in blocks.iter().rev() {
        system.substitute(block);
        system.exchange(block);
    }
}

/// A block of D: its first row, its number of rows, and the row that the last of these was
/// exchanged with.
#[derive(Clone, Copy)]
struct PivotBlock {
    start: usize,
    width: usize,
    other: usize,
}

fn blocks(pivots: &[i32]) -> Vec<PivotBlock> {
    let (mut blocks, mut start) = (Vec::new(), 0);
    while start < pivots.len() {
        let width = if pivots[start] < 0 && start + 1 < pivots.len() { 2 } else { 1 };
        let last = start + width - 1;
        let other = (pivots[start].unsigned_abs() as usize).wrapping_sub(1);
        let other = if other < pivots.len() { other } else { last };
        blocks.push(PivotBlock { start, width, other });
        start += width;
    }
    blocks
}

struct System<'a, T> {
    packed: &'a [T],
    n: usize,
    columns: usize,
    hermitian: bool,
    b: &'a mut [T],
}

impl<T: MatrixScalar> System<'_, T> {
    fn at(&self, row: usize, column: usize) -> T {
        self.packed[row * self.n + column]
    }

    /// Returns the conjugate if the matrix is Hermitian, else the number itself.
    fn conjugate_if_hermitian(&self, x: T) -> T {
        if self.hermitian { x.conj() } else { x }
    }

    fn exchange(&mut self, block: PivotBlock) {
        let last = block.start + block.width - 1;
        if block.other != last {
            for column in 0..self.columns {
                self.b.swap(last * self.columns + column, block.other * self.columns + column);
            }
        }
    }

    /// Subtracts a multiple of one row from another.
    fn subtract(&mut self, from: usize, row: usize, factor: T) {
        for column in 0..self.columns {
            let x = self.b[row * self.columns + column];
            self.b[from * self.columns + column] -= x * factor;
        }
    }

    fn eliminate(&mut self, block: PivotBlock) {
        for below in block.start + block.width..self.n {
            for row in block.start..block.start + block.width {
                self.subtract(below, row, self.at(below, row));
            }
        }
    }

    fn substitute(&mut self, block: PivotBlock) {
        for below in block.start + block.width..self.n {
            for row in block.start..block.start + block.width {
                self.subtract(row, below, self.conjugate_if_hermitian(self.at(below, row)));
            }
        }
    }

    fn divide(&mut self, block: PivotBlock) {
        let (start, columns) = (block.start, self.columns);
        let first = self.at(start, start);
        if block.width == 1 {
            self.b[start * columns..][..columns].iter_mut().for_each(|x| *x /= first);
            return;
        }
        let (off, last) = (self.at(start + 1, start), self.at(start + 1, start + 1));
        let above = self.conjugate_if_hermitian(off);
        // [first above; off last] is divided by its off-diagonal elements, as squares may overflow:
        // for x / above and y / off it is [first / above, 1; 1, last / off].
        let (first, last) = (first / above, last / off);
        let determinant = first * last - T::one();
        for column in 0..columns {
            let (at, next) = (start * columns + column, (start + 1) * columns + column);
            let (x, y) = (self.b[at] / above, self.b[next] / off);
            self.b[at] = (last * x - y) / determinant;
            self.b[next] = (first * y - x) / determinant;
        }
    }
}

#[cfg(test)]
mod tests {
    use num_complex::Complex;

    use super::*;
    use crate::matrices::check::{SampleMatrix, assert_near, product, random};
    use crate::matrices::ldl;

    fn check<T: SampleMatrix>(n: usize, hermitian: bool) {
        let mut a = random::<T>(n, n, 3);
        for row in 0..n {
            for column in row..n {
                let x = a[column * n + row];
                a[row * n + column] = if hermitian { x.conj() } else { x };
            }
            if hermitian {
                let x = a[row * n + row];
                a[row * n + row] = T::of_parts(x.real(), T::Real::zero());
            }
        }
        let b = random::<T>(n, 3, 4);
        let (mut packed, mut pivots, mut x) = (a.clone(), vec![0; n], b.clone());
        assert_eq!(ldl(&mut packed, n, hermitian, &mut pivots), 0);
        ldl_solve(&packed, n, hermitian, &pivots, &mut x);
        assert_near(&product(&a, &x, n, n, 3), &b, n * n);
    }

    #[test]
    fn solutions_satisfy_the_equations() {
        for n in [1, 2, 3, 5, 9] {
            check::<f64>(n, false);
            check::<Complex<f64>>(n, false);
            check::<Complex<f64>>(n, true);
        }
    }
}
