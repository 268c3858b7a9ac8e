"""Matrices as products: Cholesky, QR and the polar decomposition, following `torch.linalg`."""

from __future__ import annotations

import gt
from gt._gt import Tensor, primitives
from gt._results import QR, CholeskyEx, Polar
from gt.ops.create import beside
from gt.ops.linalg_checks import need_matrices, raise_if_failed
from gt.ops.registry import function

LINALG = "gt.linalg"


@function(namespace=LINALG)
def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """Return the triangle L of Hermitian, positive-definite matrices: `A = L @ L.mH`.

    Args:
        A: matrices [..., n, n]; one triangle is read.
        upper: whether to read and return the upper triangle: `A = U.mH @ U`.

    Raises:
        LinAlgError: a matrix is not positive-definite; the check waits for the values.

    >>> gt.linalg.cholesky(gt.tensor([[4.0, 2.0], [2.0, 2.0]]))
    tensor([[2., 0.],
            [1., 1.]], dtype=float32)
    """
    return _cholesky("linalg.cholesky", A, upper, check_errors=True).L


@function(namespace=LINALG)
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> CholeskyEx:
    """Return the triangle of `cholesky`, and the order of the first nonpositive minor, or 0.

    Args:
        A: matrices [..., n, n].
        upper: whether to read and return the upper triangle.
        check_errors: whether to raise `LinAlgError` as `cholesky` does.

    >>> gt.linalg.cholesky_ex(gt.tensor([[1.0, 0.0], [0.0, -1.0]])).info
    tensor(2, dtype=int32)
    """
    return _cholesky("linalg.cholesky_ex", A, upper, check_errors)


def _cholesky(name: str, A: Tensor, upper: bool, check_errors: bool) -> CholeskyEx:
    need_matrices(name, A, square=True)
    L, info = primitives._linalg_cholesky(A.mH if upper else A)
    if check_errors:
        reason = "the leading minor of order {code} is not positive, so there is no factor"
        raise_if_failed(name, info, reason, "cholesky takes positive-definite matrices")
    return CholeskyEx(L.mH if upper else L, info)


@function(namespace=LINALG)
def qr(A: Tensor, mode: str = "reduced") -> QR:
    """Return orthonormal columns Q and an upper triangle R: `A = Q @ R`.

    Args:
        A: matrices [..., m, n].
        mode: "reduced" for Q [..., m, k] and R [..., k, n] with k = min(m, n), "complete" for
            Q [..., m, m] and R [..., m, n], "r" for R of "reduced" and an empty Q.

    >>> gt.linalg.qr(gt.eye(2)).R.abs()
    tensor([[1., 0.],
            [0., 1.]], dtype=float32)
    """
    need_matrices("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"linalg.qr: mode is {mode!r}, expected 'reduced', 'complete' or 'r'")
    Q, R = primitives._linalg_qr(A, mode == "complete")
    return QR(no_values(A) if mode == "r" else Q, R)


def no_values(A: Tensor, *size: int, dtype: gt.dtype | None = None) -> Tensor:
    """Return an empty tensor in the session of another tensor, and by default in its dtype."""
    with beside(A):
        return gt.zeros(size or (0,), dtype=A.dtype if dtype is None else dtype)


@function(namespace=LINALG)
def polar(A: Tensor) -> Polar:
    """Return orthonormal columns U and a Hermitian, positive semidefinite H: `A = U @ H`.

    They are made from the singular values: `U = W @ Vh` and `H = Vh.mH @ diag(S) @ Vh`. Matrices
    [..., m, n] must have at least as many rows as columns.

    >>> gt.linalg.polar(gt.tensor([[3.0]])).H
    tensor([[3.]], dtype=float32)
    """
    need_matrices("linalg.polar", A)
    if A.shape[-2] < A.shape[-1]:
        raise ValueError(f"linalg.polar: shape {A.shape} has fewer rows than columns")
    W, S, Vh = primitives._linalg_svd(A, False)
    return Polar(W @ Vh, (Vh.mH * S.unsqueeze(-2)) @ Vh)


@function(namespace=LINALG)
def matrix_sqrth(A: Tensor) -> Tensor:
    """Return the Hermitian square root X of Hermitian, positive-definite matrices: `A = X @ X`.

    Args:
        A: matrices [..., n, n]; the lower triangle is read.

    >>> gt.linalg.matrix_sqrth(gt.tensor([[4.0, 0.0], [0.0, 9.0]])).diagonal()
    tensor([2., 3.], dtype=float32)
    """
    need_matrices("linalg.matrix_sqrth", A, square=True)
    L, V = primitives._linalg_eigh(A)
    return (V * L.sqrt().unsqueeze(-2)) @ V.mH
