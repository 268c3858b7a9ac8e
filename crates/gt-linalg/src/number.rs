//! The element types of matrices, each with its compiled factorizations.

use num_complex::Complex;

use crate::matrices::{self, Triangle, Unsolved, Vectors};

/// A real or complex number, in single or double precision: `f32`, `f64` and `Complex` of either.
///
/// Matrices are row-major slices. The functions compute on the calling thread.
pub trait MatrixElement: Copy + Send + Sync + 'static {
    /// The type of the real and imaginary parts.
    type Real: Copy + Send + Sync + 'static;

    /// The number zero.
    const ZERO: Self;

    /// Replaces a Hermitian matrix of `n` rows by the lower triangular L with a = L L^H, and zeros
    /// above it. Only its lower triangle is read, and only the real parts of its diagonal.
    ///
    /// # Errors
    /// The number, from 1, of the first leading minor that is not positive: LAPACK's info. The
    /// matrix then holds no factor.
    fn cholesky(a: &mut [Self], n: usize) -> Result<(), usize>;

    /// Writes the eigenvalues of a square matrix of `n` rows and, if requested, its right
    /// eigenvectors as columns, in no particular order. As LAPACK's, eigenvectors have norm 1, and
    /// those that are not real are rotated so that their largest element is real; complex
    /// eigenvalues of a real matrix come in pairs, the one with the positive imaginary part first.
    ///
    /// # Errors
    /// An element is not finite, or the iteration does not converge.
    fn eig(
        a: &[Self],
        n: usize,
        values: &mut [Complex<Self::Real>],
        vectors: Option<&mut [Complex<Self::Real>]>,
    ) -> Result<(), Unsolved>;

    /// Writes the eigenvalues of a Hermitian matrix of `n` rows, the smallest first, and, if
    /// requested, its eigenvectors as columns of norm 1. Only the lower triangle is read, or only
    /// the upper one, and only the real parts of the diagonal.
    ///
    /// # Errors
    /// An element of the triangle is not finite, or the iteration does not converge.
    fn eigh(
        a: &[Self],
        n: usize,
        upper: bool,
        values: &mut [Self::Real],
        vectors: Option<&mut [Self]>,
    ) -> Result<(), Unsolved>;

    /// Replaces a matrix of `n` rows by its factors, a = L D L^T, or L D L^H if `hermitian`, by the
    /// method of Bunch and Kaufman. `pivots` are those of LAPACK's sytrf or hetrf.
    ///
    /// Returns LAPACK's info: 0, or the index (from 1) of the first block of D that is zero.
    fn ldl(a: &mut [Self], n: usize, hermitian: bool, pivots: &mut [i32]) -> usize;

    /// Replaces `b`, of `n` rows, by the solution x of a x = b, where `packed` and `pivots` are the
    /// factors of a by [`ldl`](MatrixElement::ldl). As LAPACK's sytrs or hetrs.
    fn ldl_solve(packed: &[Self], n: usize, hermitian: bool, pivots: &[i32], b: &mut [Self]);

    /// Replaces a matrix by its factors: a = P L U. U is in the upper triangle, and L, without its
    /// diagonal of ones, below it. Row k was exchanged with row `pivots[k]`, counted from 1, in
    /// order of k; there are as many pivots as rows or columns, whichever are fewer.
    ///
    /// Returns LAPACK's info: 0, or the index (from 1) of the first zero on U's diagonal.
    fn lu(a: &mut [Self], rows: usize, columns: usize, pivots: &mut [i32]) -> usize;

    /// Replaces a matrix by R, in its upper triangle, and by the reflectors whose product is Q,
    /// below it and in `tau`. As LAPACK's geqrf.
    fn qr(a: &mut [Self], rows: usize, columns: usize, tau: &mut [Self]);

    /// Writes the first `out_columns` columns of the product of the reflectors that
    /// [`qr`](MatrixElement::qr) leaves in `packed`. As LAPACK's orgqr or ungqr.
    fn householder_product(
        packed: &[Self],
        rows: usize,
        columns: usize,
        tau: &[Self],
        out: &mut [Self],
        out_columns: usize,
    );

    /// Writes the singular values of a matrix, the largest first, and, if requested, its singular
    /// vectors: a = u diag(values) vh. There are as many values as rows or columns, whichever are
    /// fewer.
    ///
    /// # Errors
    /// An element is not finite, or the iteration does not converge.
    fn svd(
        a: &[Self],
        rows: usize,
        columns: usize,
        values: &mut [Self::Real],
        vectors: Option<Vectors<'_, Self>>,
    ) -> Result<(), Unsolved>;

    /// Replaces `b`, of `rows` and `columns`, by the solution x of a x = b if `left`, else of x a =
    /// b. A zero on the diagonal yields elements that are infinite or NaN.
    fn solve_triangular(
        a: &[Self],
        triangle: Triangle,
        b: &mut [Self],
        rows: usize,
        columns: usize,
        left: bool,
    );
}

macro_rules! numbers {
    ($($number:ty, $real:ty, $zero:expr;)*) => { $(
        impl MatrixElement for $number {
            type Real = $real;

            const ZERO: Self = $zero;

            fn cholesky(a: &mut [Self], n: usize) -> Result<(), usize> {
                matrices::cholesky(a, n)
            }

            fn eig(
                a: &[Self],
                n: usize,
                values: &mut [Complex<$real>],
                vectors: Option<&mut [Complex<$real>]>,
            ) -> Result<(), Unsolved> {
                matrices::eig(a, n, values, vectors)
            }

            fn eigh(
                a: &[Self],
                n: usize,
                upper: bool,
                values: &mut [$real],
                vectors: Option<&mut [Self]>,
            ) -> Result<(), Unsolved> {
                matrices::eigh(a, n, upper, values, vectors)
            }

            fn ldl(a: &mut [Self], n: usize, hermitian: bool, pivots: &mut [i32]) -> usize {
                matrices::ldl(a, n, hermitian, pivots)
            }

            fn ldl_solve(packed: &[Self], n: usize, hermitian: bool, pivots: &[i32], b: &mut [Self]) {
                matrices::ldl_solve(packed, n, hermitian, pivots, b);
            }

            fn lu(a: &mut [Self], rows: usize, columns: usize, pivots: &mut [i32]) -> usize {
                matrices::lu(a, rows, columns, pivots)
            }

            fn qr(a: &mut [Self], rows: usize, columns: usize, tau: &mut [Self]) {
                matrices::qr(a, rows, columns, tau);
            }

            fn householder_product(
                packed: &[Self],
                rows: usize,
                columns: usize,
                tau: &[Self],
                out: &mut [Self],
                out_columns: usize,
            ) {
                matrices::householder_product(packed, rows, columns, tau, out, out_columns);
            }

            fn svd(
                a: &[Self],
                rows: usize,
                columns: usize,
                values: &mut [$real],
                vectors: Option<Vectors<'_, Self>>,
            ) -> Result<(), Unsolved> {
                matrices::svd(a, rows, columns, values, vectors)
            }

            fn solve_triangular(
                a: &[Self],
                triangle: Triangle,
                b: &mut [Self],
                rows: usize,
                columns: usize,
                left: bool,
            ) {
                matrices::solve_triangular(a, triangle, b, rows, columns, left);
            }
        }
    )* };
}

numbers! {
    f32, f32, 0.0;
    f64, f64, 0.0;
    Complex<f32>, f32, Complex { re: 0.0, im: 0.0 };
    Complex<f64>, f64, Complex { re: 0.0, im: 0.0 };
}
