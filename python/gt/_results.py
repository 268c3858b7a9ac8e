"""What operations with several results give."""

from typing import NamedTuple

from gt._gt import Tensor


class ValuesIndices(NamedTuple):
    """The values along an axis and where they were, as `max(dim)` gives them."""

    values: Tensor
    indices: Tensor


class MinMax(NamedTuple):
    """The smallest and the largest value, as `aminmax` gives them."""

    min: Tensor
    max: Tensor


class Histogram(NamedTuple):
    """Counts and the ends of the intervals, as `histogram` and `histogramdd` give them."""

    hist: Tensor
    bin_edges: Tensor | tuple[Tensor, ...]


class CholeskyEx(NamedTuple):
    """A factor of Cholesky and which leading minor is not positive, as `linalg.cholesky_ex`."""

    L: Tensor
    info: Tensor


class QR(NamedTuple):
    """A matrix of orthonormal columns and an upper triangle, as `linalg.qr` gives them."""

    Q: Tensor
    R: Tensor


class Geqrf(NamedTuple):
    """The reflections of a QR factorisation, as `geqrf` gives them."""

    a: Tensor
    tau: Tensor


class SVD(NamedTuple):
    """Singular values and vectors, the right ones as rows, as `linalg.svd` gives them."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class OldSVD(NamedTuple):
    """Singular values and vectors, the right ones as columns, as `svd` gives them."""

    U: Tensor
    S: Tensor
    V: Tensor


class Eigen(NamedTuple):
    """Eigenvalues and eigenvectors, as `linalg.eigh` and `linalg.eig` give them."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class Polar(NamedTuple):
    """A matrix of orthonormal columns and a Hermitian one, as `linalg.polar` gives them."""

    U: Tensor
    H: Tensor


class SignLogAbsDet(NamedTuple):
    """The sign of a determinant and the logarithm of its absolute value, as `slogdet`."""

    sign: Tensor
    logabsdet: Tensor


class PLU(NamedTuple):
    """A permutation and two triangles, as `linalg.lu` and `lu_unpack` give them."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUFactor(NamedTuple):
    """Both triangles in one matrix and the swaps of rows, as `linalg.lu_factor` gives them."""

    LU: Tensor
    pivots: Tensor


class LUFactorEx(NamedTuple):
    """As `LUFactor`, with the place of the first 0 on the diagonal, as `linalg.lu_factor_ex`."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


class LDLFactor(NamedTuple):
    """A triangle and blocks in one matrix, and swaps of rows, as `linalg.ldl_factor`."""

    LD: Tensor
    pivots: Tensor


class LDLFactorEx(NamedTuple):
    """As `LDLFactor`, with the place of the first 0 in D, as `linalg.ldl_factor_ex`."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


class InvEx(NamedTuple):
    """An inverse and whether there is one, as `linalg.inv_ex` gives them."""

    inverse: Tensor
    info: Tensor


class SolveEx(NamedTuple):
    """A solution and whether there is one, as `linalg.solve_ex` gives them."""

    result: Tensor
    info: Tensor


class Lstsq(NamedTuple):
    """What least squares find, as `linalg.lstsq` gives them."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


class TriangularSolve(NamedTuple):
    """A solution and the triangle that it is of, as `triangular_solve` gives them."""

    solution: Tensor
    cloned_coefficient: Tensor
