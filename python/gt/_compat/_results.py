"""The named tuples that operations with several results return."""

from typing import NamedTuple

from gt._gt import Tensor


class ValuesIndices(NamedTuple):
    """Values along an axis and their indices, as returned by `max(dim)`."""

    values: Tensor
    indices: Tensor


class MinMax(NamedTuple):
    """The smallest and the largest value, as returned by `aminmax`."""

    min: Tensor
    max: Tensor


class Frexp(NamedTuple):
    """Mantissas and exponents, as returned by `frexp`."""

    mantissa: Tensor
    exponent: Tensor


class Histogram(NamedTuple):
    """Counts and bin edges, as returned by `histogram` and `histogramdd`."""

    hist: Tensor
    bin_edges: Tensor | tuple[Tensor, ...]


class CholeskyEx(NamedTuple):
    """A Cholesky factor and an error code, as returned by `linalg.cholesky_ex`.

    `info` is 0, or the order of the first leading minor that is not positive.
    """

    L: Tensor
    info: Tensor


class QR(NamedTuple):
    """A matrix with orthonormal columns and an upper triangular one, as returned by `linalg.qr`."""

    Q: Tensor
    R: Tensor


class Geqrf(NamedTuple):
    """The Householder reflectors of a QR factorisation, as returned by `geqrf`."""

    a: Tensor
    tau: Tensor


class SVD(NamedTuple):
    """Singular values and vectors, the right vectors as rows, as returned by `linalg.svd`."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class OldSVD(NamedTuple):
    """Singular values and vectors, the right vectors as columns, as returned by `svd`."""

    U: Tensor
    S: Tensor
    V: Tensor


class Eigen(NamedTuple):
    """Eigenvalues and eigenvectors, as returned by `linalg.eigh` and `linalg.eig`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class Polar(NamedTuple):
    """A matrix with orthonormal columns and a Hermitian one, as returned by `linalg.polar`."""

    U: Tensor
    H: Tensor


class SignLogAbsDet(NamedTuple):
    """The sign of a determinant and the logarithm of its absolute value, returned by `slogdet`."""

    sign: Tensor
    logabsdet: Tensor


class PLU(NamedTuple):
    """A permutation and two triangular matrices, as returned by `linalg.lu` and `lu_unpack`."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUFactor(NamedTuple):
    """Both LU factors in one matrix and the row swaps, as returned by `linalg.lu_factor`."""

    LU: Tensor
    pivots: Tensor


class LUFactorEx(NamedTuple):
    """`LUFactor` with the position of the first 0 on U's diagonal: see `linalg.lu_factor_ex`."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


class LDLFactor(NamedTuple):
    """Both LDL factors in one matrix and the row swaps, as returned by `linalg.ldl_factor`."""

    LD: Tensor
    pivots: Tensor


class LDLFactorEx(NamedTuple):
    """`LDLFactor` with the position of the first 0 in D, as returned by `linalg.ldl_factor_ex`."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


class InvEx(NamedTuple):
    """An inverse and an error code, which is 0 if it exists, as returned by `linalg.inv_ex`."""

    inverse: Tensor
    info: Tensor


class SolveEx(NamedTuple):
    """A solution and an error code, which is 0 if it exists, as returned by `linalg.solve_ex`."""

    result: Tensor
    info: Tensor


class Lstsq(NamedTuple):
    """The solution of a least squares problem, as returned by `linalg.lstsq`."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


class TriangularSolve(NamedTuple):
    """A solution and a copy of the coefficients, as returned by `triangular_solve`."""

    solution: Tensor
    cloned_coefficient: Tensor
