"""Pseudoinverses and least squares, following `torch.linalg`."""

from __future__ import annotations

from typing import Any

import gt
from gt import _gt
from gt._gt import Tensor, primitives
from gt._results import Lstsq
from gt.autograd import Function
from gt.ops.linalg_checks import is_vector, need_matrices, need_same_dtype, one_batch
from gt.ops.linalg_factors import LINALG, no_values
from gt.ops.linalg_spectra import matrix_rank, svdvals, threshold
from gt.ops.registry import function, operation


@function(namespace=LINALG)
def pinv(
    A: Tensor,
    rcond: Tensor | float | None = None,
    hermitian: bool = False,
    *,
    atol: Tensor | float | None = None,
    rtol: Tensor | float | None = None,
) -> Tensor:
    """Return the Moore-Penrose pseudoinverses, [..., n, m] for matrices [..., m, n].

    Args:
        A: matrices [..., m, n].
        rcond: NumPy's name of `rtol`, with an `atol` of 0.
        hermitian: whether the matrices are Hermitian, so that eigenvalues suffice.
        atol: singular values up to this value count as 0.
        rtol: singular values up to this share of the largest count as 0; see `matrix_rank`.

    >>> gt.linalg.pinv(gt.tensor([[2.0, 0.0], [0.0, 0.0]])).diagonal()
    tensor([0.5, 0. ], dtype=float32)
    """
    need_matrices("linalg.pinv", A, square=hermitian)
    if rcond is not None:
        atol, rtol = 0.0, rcond
    return _Pseudoinverse.apply(A, hermitian, atol, rtol)


@operation(autocast="float32")
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """Return the pseudoinverses of matrices; see `gt.linalg.pinv`.

    >>> gt.pinverse(gt.tensor([[2.0]]))
    tensor([[0.5]], dtype=float32)
    """
    return pinv(input, rcond)


class _Pseudoinverse(Function):
    """The pseudoinverse, with a gradient that holds for matrices of any constant rank.

    Golub and Pereyra, The differentiation of pseudo-inverses and nonlinear least squares
    problems whose variables separate (1973), equation 4.12.
    """

    @staticmethod
    def forward(ctx: Any, A: Tensor, hermitian: bool, atol: Any, rtol: Any) -> Tensor:
        if hermitian:
            values, V = primitives._linalg_eigh(A)
            U, sizes = V, values.abs()
        else:
            U, values, Vh = primitives._linalg_svd(A, False)
            V, sizes = Vh.mH, values
        counts = sizes > threshold(A, sizes, atol, rtol)
        inverse = primitives.where(counts, 1 / primitives.where(counts, values, 1.0), 0.0)
        P = (V * inverse.unsqueeze(-2)) @ U.mH
        ctx.save_for_backward(A, P)
        return P

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        A, P = ctx.saved_tensors
        K = grad.mH @ P
        last = K @ P.mH
        by_A = last - A @ (P @ last) - (P @ K).mH + P.mH @ (P @ (grad.mH - K @ A))
        return by_A, None, None, None


@function(namespace=LINALG)
def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Lstsq:
    """Return the X that minimizes the squares of `A @ X - B`; of several, the one of least norm.

    Args:
        A: matrices [..., m, n].
        B: vectors [..., m] or matrices [..., m, k]; batch axes broadcast.
        rcond: the share of the largest singular value up to which others count as 0;
            max(m, n) times the dtype's epsilon by default.
        driver: "gels" by QR, for matrices of full rank; "gelsy" (the default), "gelsd" or "gelss"
            by the pseudoinverse, for any. As in LAPACK, it determines which results are computed.

    Returns the solution [..., n, k]; residuals [..., k] (not for gelsy, and only for full ranks
    and m > n); the rank (not for gels); the singular values (gelsd and gelss). Others are empty.

    >>> gt.linalg.lstsq(gt.ones(2, 1), gt.tensor([[1.0], [3.0]])).solution.round()
    tensor([[2.]], dtype=float32)
    """
    name, driver = "linalg.lstsq", "gelsy" if driver is None else driver
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise ValueError(f"{name}: driver is {driver!r}, expected gels, gelsy, gelsd or gelss")
    need_matrices(name, A)
    need_same_dtype(name, A, B)
    vector = is_vector(A, B)
    B = B.unsqueeze(-1) if vector else B
    if A.shape[-2] != B.shape[-2]:
        raise ValueError(f"{name}: shapes {A.shape} and {B.shape} differ in the number of rows")
    wide_A, wide_B = one_batch(A, B)
    by_qr = driver == "gels"
    X = _by_qr(wide_A, wide_B) if by_qr else pinv(wide_A, rcond) @ wide_B
    rank = no_values(A, dtype=gt.int64) if by_qr else matrix_rank(A, rtol=rcond)
    has_values = driver in ("gelsd", "gelss")
    values = svdvals(A.detach()) if has_values else no_values(A).abs()
    residuals = no_values(A).abs()
    rows, columns = A.shape[-2:]
    full = by_qr or (has_values and _gt.whole_batch(rank == columns).all().item())
    if rows > columns and full:
        residuals = (wide_A @ X - wide_B).abs().square().sum(-2)
        residuals = residuals.squeeze(-1) if vector else residuals
    return Lstsq(X.squeeze(-1) if vector else X, residuals, rank, values)


def _by_qr(A: Tensor, B: Tensor) -> Tensor:
    """Solve with `A = Q @ R`, or with `A.mH = Q @ R` if A has more columns than rows."""
    if A.shape[-2] >= A.shape[-1]:
        Q, R = primitives._linalg_qr(A, False)
        return primitives._linalg_solve_triangular(R, Q.mH @ B, True, False)
    Q, R = primitives._linalg_qr(A.mH, False)
    return Q @ primitives._linalg_solve_triangular(R.mH, B, False, False)
