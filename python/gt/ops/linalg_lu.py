"""LU factorisation with row permutations, following `torch.linalg`."""

from __future__ import annotations

import gt
from gt._gt import Tensor, primitives
from gt._results import PLU, LUFactor, LUFactorEx
from gt.ops.create import beside
from gt.ops.linalg_checks import need_matrices, need_same_dtype, one_batch, raise_if_failed
from gt.ops.linalg_factors import LINALG, no_values
from gt.ops.registry import function


@function(namespace=LINALG)
def lu_factor(A: Tensor, *, pivot: bool = True) -> LUFactor:
    """Return L and U of `lu` in one matrix, without L's diagonal of ones, and the row swaps.

    Args:
        A: matrices [..., m, n].
        pivot: must be True, as on PyTorch's CPU.

    Row i was swapped with row `pivots[i] - 1`.

    Raises:
        LinAlgError: U has a 0 on the diagonal; the check waits for the values.

    >>> gt.linalg.lu_factor(gt.tensor([[1.0, 2.0], [2.0, 2.0]])).pivots
    tensor([2, 2], dtype=int32)
    """
    return LUFactor(*factored("linalg.lu_factor", A, pivot, check_errors=True)[:2])


@function(namespace=LINALG)
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> LUFactorEx:
    """Return `lu_factor`'s results, and the index of the first 0 on U's diagonal from 1, or 0.

    Args:
        A: matrices [..., m, n].
        pivot: must be True, as for `lu_factor`.
        check_errors: whether to raise `LinAlgError` as `lu_factor` does.

    >>> gt.linalg.lu_factor_ex(gt.zeros(2, 2)).info
    tensor(1, dtype=int32)
    """
    return factored("linalg.lu_factor_ex", A, pivot, check_errors)


def factored(name: str, A: Tensor, pivot: bool = True, check_errors: bool = False) -> LUFactorEx:
    """Factor matrices; errors carry the given name of the operation."""
    need_matrices(name, A)
    if not pivot:
        raise ValueError(f"{name}: pivot is False, but factors are only computed with row swaps")
    result = LUFactorEx(*primitives._linalg_lu(A))
    if check_errors:
        reason = "U[{code}, {code}] (counted from 1) is 0, so systems cannot be solved with it"
        hint = "gt.linalg.lu and gt.linalg.lu_factor_ex return the factors of singular matrices"
        raise_if_failed(name, result.info, reason, hint)
    return result


@function(namespace=LINALG)
def lu(A: Tensor, *, pivot: bool = True) -> PLU:
    """Return a permutation, a unit lower triangle and an upper triangle: `A = P @ L @ U`.

    Args:
        A: matrices [..., m, n]; with k = min(m, n), L is [..., m, k] and U [..., k, n].
        pivot: must be True, as for `lu_factor`.

    >>> gt.linalg.lu(gt.tensor([[1.0, 2.0], [2.0, 2.0]])).L
    tensor([[1. , 0. ],
            [0.5, 1. ]], dtype=float32)
    """
    return lu_unpack(*factored("linalg.lu", A, pivot)[:2])


@function(autocast="float32")
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> PLU:
    """Return P, L and U from the results of `linalg.lu_factor`.

    Args:
        LU_data: both triangles in one matrix [..., m, n].
        LU_pivots: the row swaps [..., min(m, n)], counted from 1.
        unpack_data: whether to return L and U; they are empty otherwise.
        unpack_pivots: whether to return P; it is empty otherwise.

    >>> gt.lu_unpack(gt.eye(2), gt.tensor([2, 2], dtype="int32")).P
    tensor([[0., 1.],
            [1., 0.]], dtype=float32)
    """
    need_matrices("lu_unpack", LU_data)
    P = L = U = no_values(LU_data)
    if unpack_data:
        L, U = triangles(LU_data)
    if unpack_pivots:
        rows = LU_data.shape[-2]
        order = primitives._linalg_lu_order(LU_pivots, rows)
        P = (_count(LU_pivots, rows).unsqueeze(-1) == order.unsqueeze(-2))._cast(LU_data.dtype)
    return PLU(P, L, U)


def triangles(LU: Tensor) -> tuple[Tensor, Tensor]:
    """Return L, with ones on the diagonal, and U from one matrix."""
    rows, columns = LU.shape[-2:]
    k = min(rows, columns)
    with beside(LU):
        ones = gt.eye(rows, k, dtype=LU.dtype)
    return LU[..., :k].tril(-1) + ones, LU[..., :k, :].triu()


def _count(like: Tensor, stop: int) -> Tensor:
    with beside(like):
        return gt.arange(stop)


@function(namespace=LINALG)
def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """Solve `A @ X = B` with the factors of A from `lu_factor`.

    Args:
        LU: both triangles in one matrix [..., n, n].
        pivots: the row swaps [..., n].
        B: the right-hand side [..., n, k]; batch axes broadcast.
        left: False to solve `X @ A = B` for B [..., k, n].
        adjoint: whether to solve with `A.mH` instead of A.

    >>> factors = gt.linalg.lu_factor(gt.tensor([[1.0, 2.0], [2.0, 2.0]]))
    >>> gt.linalg.lu_solve(*factors, gt.tensor([[5.0], [6.0]]))
    tensor([[1.],
            [2.]], dtype=float32)
    """
    name = "linalg.lu_solve"
    need_matrices(name, LU, square=True)
    need_matrices(name, B)
    need_same_dtype(name, LU, B)
    fitting = B.shape[-2 if left else -1]
    if fitting != LU.shape[-1]:
        equation = "A @ X = B" if left else "X @ A = B"
        raise ValueError(f"{name}: shapes {LU.shape} and {B.shape} do not fit in {equation}")
    if not left:
        return _solved(LU, pivots, B.mH, not adjoint).mH
    return _solved(LU, pivots, B, adjoint)


def _solved(LU: Tensor, pivots: Tensor, B: Tensor, adjoint: bool) -> Tensor:
    """Solve with both triangles, and permute the rows before or after."""
    order = primitives._linalg_lu_order(pivots, LU.shape[-1])
    LU, B = one_batch(LU, B)
    (L, U), solve = triangles(LU), primitives._linalg_solve_triangular
    if not adjoint:
        return solve(U, solve(L, _rows(B, order), False, True), True, False)
    return _rows(solve(L.mH, solve(U.mH, B, False, False), True, True), order.argsort(-1))


def _rows(x: Tensor, order: Tensor) -> Tensor:
    return primitives.gather(x, -2, order.unsqueeze(-1).expand(x.shape))
