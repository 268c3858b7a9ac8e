"""Linear algebra under the names in `torch` itself."""

from __future__ import annotations

from typing import Any

import gt
from gt._gt import Tensor, primitives
from gt._results import QR, LUFactor, LUFactorEx, OldSVD, TriangularSolve
from gt.autograd import Function
from gt.ops.linalg_checks import need_matrices, need_same_dtype, one_batch
from gt.ops.linalg_factors import cholesky as cholesky_factor
from gt.ops.linalg_factors import no_values
from gt.ops.linalg_factors import qr as factor_qr
from gt.ops.linalg_lu import factored
from gt.ops.linalg_lu import lu_solve as solve_lu
from gt.ops.linalg_solve import solve_triangular
from gt.ops.matrices import identity
from gt.ops.registry import function, operation


@operation(autocast="float32")
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """Return the triangle of positive-definite matrices; see `gt.linalg.cholesky`.

    >>> gt.cholesky(gt.tensor([[4.0]]))
    tensor([[2.]], dtype=float32)
    """
    return cholesky_factor(input, upper=upper)


@operation(autocast="float32")
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """Return the inverse of `L @ L.mH`, or of `L.mH @ L` for an upper triangle.

    >>> gt.cholesky_inverse(gt.tensor([[2.0]]))
    tensor([[0.25]], dtype=float32)
    """
    need_matrices("cholesky_inverse", L, square=True)
    return cholesky_solve(identity(L), L, upper)


@operation(autocast="float32")
def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """Solve `L @ L.mH @ X = B`, or `L.mH @ L @ X = B` for an upper triangle.

    Args:
        B: the right-hand side [..., n, k]; batch axes broadcast.
        L: triangles [..., n, n], such as those of `gt.linalg.cholesky`.
        upper: whether L is an upper triangle.

    >>> gt.cholesky_solve(gt.tensor([[8.0]]), gt.tensor([[2.0]]))
    tensor([[2.]], dtype=float32)
    """
    need_matrices("cholesky_solve", L, square=True)
    need_matrices("cholesky_solve", B)
    need_same_dtype("cholesky_solve", L, B)
    if B.shape[-2] != L.shape[-1]:
        raise ValueError(f"cholesky_solve: shapes {B.shape} and {L.shape} do not fit")
    B, L = one_batch(B, L)
    return _CholeskySolve.apply(B, L, upper)


class _CholeskySolve(Function):
    """The solution for `A = L @ L.mH`; L's gradient is PyTorch's, which is not triangular."""

    @staticmethod
    def forward(ctx: Any, B: Tensor, L: Tensor, upper: bool) -> Tensor:
        lower = L.mH if upper else L
        solve = primitives._linalg_solve_triangular
        X = solve(lower.mH, solve(lower, B, False, False), True, False)
        ctx.upper = upper
        ctx.save_for_backward(L, X)
        return X

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        L, X = ctx.saved_tensors
        by_B = cholesky_solve(grad, L, ctx.upper)
        product = by_B @ X.mH
        by_A = -(product + product.mH)
        return by_B, L @ by_A if ctx.upper else by_A @ L, None


@operation(autocast="float32")
def qr(input: Tensor, some: bool = True) -> QR:
    """Return orthonormal columns and an upper triangle; see `gt.linalg.qr`.

    `some` selects mode "reduced", else "complete".

    >>> gt.qr(gt.eye(2)).R.shape
    (2, 2)
    """
    return factor_qr(input, "reduced" if some else "complete")


@operation(autocast="float32")
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> OldSVD:
    """Return U, S and V with `input = U @ diag(S) @ V.mH`; see `gt.linalg.svd`.

    Args:
        input: matrices [..., m, n].
        some: whether U and V have min(m, n) columns, else they are square.
        compute_uv: whether to compute U and V; they are square zeros otherwise.

    >>> gt.svd(gt.tensor([[3.0, 0.0], [0.0, -4.0]])).S
    tensor([4., 3.], dtype=float32)
    """
    need_matrices("svd", input)
    U, S, Vh = primitives._linalg_svd(input, not some and compute_uv)
    if compute_uv:
        return OldSVD(U, S, Vh.mH)
    batch, (m, n) = input.shape[:-2], input.shape[-2:]
    return OldSVD(no_values(input, *batch, m, m), S, no_values(input, *batch, n, n))


@operation(autocast="float32")
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> LUFactor | LUFactorEx:
    """Return both LU factors in one matrix and the row swaps; see `gt.linalg.lu_factor`.

    With `get_infos` it also returns the index of the first zero on U's diagonal; without, it
    raises `LinAlgError` where there is one.

    >>> gt.lu(gt.eye(2))[1]
    tensor([1, 2], dtype=int32)
    """
    result = factored("lu", A, pivot, check_errors=not get_infos)
    return result if get_infos else LUFactor(*result[:2])


@operation(autocast="float32")
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """Solve `A @ x = b` with A's factors of `lu`; see `gt.linalg.lu_solve`.

    >>> gt.lu_solve(gt.ones(2, 1), *gt.lu(gt.eye(2))).shape
    (2, 1)
    """
    return solve_lu(LU_data, LU_pivots, b)


@operation(autocast="float32")
def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> TriangularSolve:
    """Solve `A @ X = b` for triangles A, and return X with a copy of A.

    Args:
        b: the right-hand side [..., n, k].
        A: matrices [..., n, n], of which one triangle is read.
        upper: whether A is an upper triangle.
        transpose: whether to solve for `A.mT`.
        unitriangular: whether to assume ones on A's diagonal.

    >>> gt.triangular_solve(gt.tensor([[4.0]]), gt.tensor([[2.0]])).solution
    tensor([[2.]], dtype=float32)
    """
    over = upper != transpose
    given = A.mT if transpose else A
    X = solve_triangular(given, b, upper=over, unitriangular=unitriangular)
    batch = X.shape[:-2]
    return TriangularSolve(X, A.expand((*batch, *A.shape[-2:])).clone())


@function(autocast="float32")
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Approximate the q largest singular values and their vectors, U, S and V, of `A - M`.

    It is algorithm 5.1 of Halko, Martinsson and Tropp, Finding structure with randomness (2009).

    Args:
        A: matrices [..., m, n].
        q: the number of singular values.
        niter: how many times the random directions are refined.
        M: a tensor to subtract, if any; it broadcasts.

    >>> gt.svd_lowrank(gt.ones(4, 3), 1)[0].shape
    (4, 1)
    """
    need_matrices("svd_lowrank", A)
    A = A if M is None else A - M
    wide = A.shape[-2] < A.shape[-1]
    A = A.mH if wide else A
    Q = _directions(A, 6 if q is None else q, 2 if niter is None else niter)
    U, S, Vh = primitives._linalg_svd(Q.mH @ A, False)
    return (Vh.mH, S, Q @ U) if wide else (Q @ U, S, Vh.mH)


def _directions(A: Tensor, q: int, niter: int) -> Tensor:
    """Return q orthonormal columns that span most of a matrix's range."""
    random = gt.randn_like(no_values(A, A.shape[-1], q))
    Q = primitives._linalg_qr(A @ random, False)[0]
    for _ in range(niter):
        Q = primitives._linalg_qr(A.mH @ Q, False)[0]
        Q = primitives._linalg_qr(A @ Q, False)[0]
    return Q


@function(autocast="float32")
def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """Approximate the q principal components of rows of data: U, S and V of `svd_lowrank`.

    Args:
        A: data [..., m, n], an observation in each row.
        q: the number of components; by default 6, or less if A has fewer.
        center: whether to subtract the mean of each column first.
        niter: how many times the random directions are refined.

    >>> gt.pca_lowrank(gt.eye(4), 2)[1].shape
    (2,)
    """
    need_matrices("pca_lowrank", A)
    most = min(A.shape[-2:])
    q = min(6, most) if q is None else q
    if not 0 <= q <= most or niter < 0:
        raise ValueError(f"pca_lowrank: q is {q} and niter {niter}, expected 0 to {most} and >= 0")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)
