"""Singular values, eigenvalues and what follows from them, following `torch.linalg`."""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor, primitives
from gt._results import SVD, Eigen
from gt.autograd import Function
from gt.ops.linalg_checks import need_matrices
from gt.ops.linalg_factors import LINALG, no_values
from gt.ops.linalg_norms import matrix_norm
from gt.ops.linalg_solve import inv_ex
from gt.ops.registry import function


@function(namespace=LINALG)
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> SVD:
    """Return orthonormal U and Vh and singular values: `A = U[..., :k] @ diag(S) @ Vh[..., :k, :]`.

    Args:
        A: matrices [..., m, n]; k = min(m, n), and S [..., k] descends.
        full_matrices: whether U is [..., m, m] and Vh [..., n, n]; else [..., m, k], [..., k, n].
        driver: must be None; PyTorch's others are for CUDA libraries.

    >>> gt.linalg.svd(gt.tensor([[3.0, 0.0], [0.0, -4.0]])).S
    tensor([4., 3.], dtype=float32)
    """
    _no_driver("linalg.svd", driver)
    need_matrices("linalg.svd", A)
    return SVD(*primitives._linalg_svd(A, full_matrices))


@function(namespace=LINALG)
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """Return the singular values of matrices [..., m, n] in descending order; see `svd`.

    >>> gt.linalg.svdvals(gt.tensor([[3.0, 0.0], [0.0, -4.0]]))
    tensor([4., 3.], dtype=float32)
    """
    _no_driver("linalg.svdvals", driver)
    need_matrices("linalg.svdvals", A)
    return _SingularValues.apply(A)


class _SingularValues(Function):
    """Singular values only: their gradient U diag(g) Vh holds even where some are equal."""

    @staticmethod
    def forward(ctx: Any, A: Tensor) -> Tensor:
        ctx.save_for_backward(A)
        return primitives._linalg_svd(A, False)[1]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        U, _, Vh = primitives._linalg_svd(ctx.saved_tensors[0], False)
        return (U * grad.unsqueeze(-2)) @ Vh


def _no_driver(name: str, driver: str | None) -> None:
    if driver is not None:
        raise ValueError(f"{name}: driver is {driver!r}, expected None")


@function(namespace=LINALG)
def eigh(A: Tensor, UPLO: str = "L") -> Eigen:
    """Return ascending real eigenvalues and orthonormal eigenvectors of Hermitian matrices.

    `A = V @ diag(L) @ V.mH`.

    Args:
        A: matrices [..., n, n].
        UPLO: the triangle that is read: "L" for the lower, "U" for the upper.

    >>> gt.linalg.eigh(gt.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.], dtype=float32)
    """
    return _eigh("linalg.eigh", A, UPLO)


@function(namespace=LINALG)
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Return the eigenvalues of Hermitian matrices; parameters as for `eigh`.

    >>> gt.linalg.eigvalsh(gt.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([1., 2.], dtype=float32)
    """
    return _eigh("linalg.eigvalsh", A, UPLO).eigenvalues


def _eigh(name: str, A: Tensor, UPLO: str) -> Eigen:
    need_matrices(name, A, square=True)
    if UPLO not in ("L", "U", "l", "u"):
        raise ValueError(f"{name}: UPLO is {UPLO!r}, expected 'L' or 'U'")
    return Eigen(*primitives._linalg_eigh(A.mH if UPLO in "Uu" else A))


@function(namespace=LINALG)
def eig(A: Tensor) -> Eigen:
    """Return the complex eigenvalues and eigenvectors of square matrices: `A @ V = V @ diag(L)`.

    Their order is undefined; each vector has length 1.

    >>> gt.linalg.eig(gt.tensor([[2.0]])).eigenvalues
    tensor([2.+0.j], dtype=complex64)
    """
    need_matrices("linalg.eig", A, square=True)
    return Eigen(*primitives._linalg_eig(A))


@function(namespace=LINALG)
def eigvals(A: Tensor) -> Tensor:
    """Return the complex eigenvalues of square matrices, in undefined order; see `eig`.

    >>> gt.linalg.eigvals(gt.tensor([[2.0]]))
    tensor([2.+0.j], dtype=complex64)
    """
    need_matrices("linalg.eigvals", A, square=True)
    return primitives._linalg_eig(A)[0]


@function(namespace=LINALG)
def matrix_rank(
    A: Tensor,
    tol: Tensor | float | None = None,
    hermitian: bool = False,
    *,
    atol: Tensor | float | None = None,
    rtol: Tensor | float | None = None,
) -> Tensor:
    """Return the number of singular values of matrices that are above a threshold.

    Args:
        A: matrices [..., m, n].
        tol: the threshold alone, as `atol` with an `rtol` of 0.
        hermitian: whether the matrices are Hermitian, so that eigenvalues suffice.
        atol: the threshold.
        rtol: the threshold as a share of the largest singular value; where neither is given,
            max(m, n) times the dtype's epsilon. The larger of both thresholds counts.

    >>> gt.linalg.matrix_rank(gt.ones(3, 3))
    tensor(1, dtype=int64)
    """
    need_matrices("linalg.matrix_rank", A, square=hermitian)
    if tol is not None:
        atol, rtol = tol, 0.0
    A = A.detach()
    sizes = eigvalsh(A).abs() if hermitian else svdvals(A)
    return (sizes > threshold(A, sizes, atol, rtol)).sum(-1)


def threshold(
    A: Tensor, sizes: Tensor, atol: Tensor | float | None, rtol: Tensor | float | None
) -> Tensor:
    """Return the threshold that singular values must exceed, with a last axis of 1."""
    usual = gt.finfo(A.dtype).eps * max(A.shape[-2:])
    atol, rtol = (x.unsqueeze(-1) if isinstance(x, Tensor) else x for x in (atol, rtol))
    if rtol is None and isinstance(atol, Tensor):
        rtol = primitives.where(atol > 0, 0.0, usual)
    elif rtol is None:
        rtol = 0.0 if atol is not None and atol > 0 else usual
    largest = sizes.amax(-1, keepdim=True) if sizes.shape[-1] else sizes
    return primitives.maximum(largest * rtol, 0.0 if atol is None else atol)


@function(namespace=LINALG)
def cond(A: Tensor, p: float | str | None = None) -> Tensor:
    """Return the condition number, `norm(A) * norm(inv(A))`, by which solutions magnify errors.

    Args:
        A: matrices [..., m, n], square unless p is None, 2 or -2.
        p: the norm, an `ord` of `matrix_norm`; None for 2.

    The condition number of singular matrices is infinite.

    >>> gt.linalg.cond(gt.tensor([[4.0, 0.0], [0.0, 1.0]]))
    tensor(4., dtype=float32)
    """
    order = 2 if p is None else p
    by_values = order in (2, -2)
    need_matrices("linalg.cond", A, square=not by_values)
    if A.numel() == 0:
        return no_values(A, *A.shape[:-2]).abs() if A.ndim > 2 else A.abs().sum()
    if by_values:
        S = svdvals(A)
        return S[..., -1] / S[..., 0] if order == -2 else S[..., 0] / S[..., -1]
    inverse, info = inv_ex(A)
    return primitives.where(info > 0, math.inf, matrix_norm(A, order) * matrix_norm(inverse, order))
