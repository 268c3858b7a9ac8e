"""Systems of linear equations and inverses, following `torch.linalg`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gt._gt import Tensor, primitives
from gt._results import InvEx, SolveEx
from gt.ops.linalg_checks import (
    is_vector,
    need_matrices,
    need_same_dtype,
    one_batch,
    raise_if_failed,
)
from gt.ops.linalg_factors import LINALG
from gt.ops.linalg_lu import factored, lu_solve
from gt.ops.matrices import identity
from gt.ops.registry import function, operation

_SINGULAR = "the matrix is singular: U[{code}, {code}] (counted from 1) of its factors is 0"


@function(namespace=LINALG)
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """Solve `A @ X = B` for square matrices.

    Args:
        A: matrices [..., n, n].
        B: vectors [n] or [..., n], if A has one more axis and otherwise the same, or matrices
            [..., n, k]; batch axes broadcast.
        left: False to solve `X @ A = B` for B [..., k, n].

    Raises:
        LinAlgError: a matrix is singular; the check waits for the values.

    >>> gt.linalg.solve(gt.tensor([[1.0, 2.0], [2.0, 2.0]]), gt.tensor([5.0, 6.0]))
    tensor([1., 2.], dtype=float32)
    """
    return _solve("linalg.solve", A, B, left, check_errors=True).result


@function(namespace=LINALG)
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> SolveEx:
    """Return `solve`'s result, and the index of the first 0 on the diagonal of U from 1, or 0.

    Args:
        A: matrices [..., n, n].
        B: vectors or matrices, as for `solve`.
        left: as for `solve`.
        check_errors: whether to raise `LinAlgError` as `solve` does.

    >>> gt.linalg.solve_ex(gt.zeros(2, 2), gt.ones(2)).info
    tensor(1, dtype=int32)
    """
    return _solve("linalg.solve_ex", A, B, left, check_errors)


def _solve(name: str, A: Tensor, B: Tensor, left: bool, check_errors: bool) -> SolveEx:
    need_matrices(name, A, square=True)
    need_same_dtype(name, A, B)
    vector = is_vector(A, B)
    if vector and not left:
        raise ValueError(f"{name}: B of shape {B.shape} holds vectors, which need left=True")
    B = B.unsqueeze(-1) if vector else B
    if B.shape[-2 if left else -1] != A.shape[-1]:
        equation = "A @ X = B" if left else "X @ A = B"
        raise ValueError(f"{name}: shapes {A.shape} and {B.shape} do not fit in {equation}")
    LU, pivots, info = factored(name, A)
    if check_errors:
        raise_if_failed(name, info, _SINGULAR, "gt.linalg.lstsq returns a least-squares solution")
    X = lu_solve(LU, pivots, B, left=left)
    return SolveEx(X.squeeze(-1) if vector else X, info)


@function(namespace=LINALG)
def inv(A: Tensor) -> Tensor:
    """Return the inverses of square matrices [..., n, n].

    Raises:
        LinAlgError: a matrix is singular; the check waits for the values.

    >>> gt.linalg.inv(gt.tensor([[2.0, 0.0], [0.0, 4.0]])).diagonal()
    tensor([0.5 , 0.25], dtype=float32)
    """
    return _inverse("linalg.inv", A, check_errors=True).inverse


@function(namespace=LINALG)
def inv_ex(A: Tensor, *, check_errors: bool = False) -> InvEx:
    """Return the inverses of matrices [..., n, n], and the index of U's first 0 from 1, or 0.

    Args:
        A: matrices [..., n, n].
        check_errors: whether to raise `LinAlgError` as `inv` does.

    >>> gt.linalg.inv_ex(gt.zeros(2, 2)).info
    tensor(1, dtype=int32)
    """
    return _inverse("linalg.inv_ex", A, check_errors)


@operation(autocast="float32")
def inverse(input: Tensor) -> Tensor:
    """Return the inverses of square matrices; see `gt.linalg.inv`.

    >>> gt.inverse(gt.tensor([[2.0]]))
    tensor([[0.5]], dtype=float32)
    """
    return _inverse("inverse", input, check_errors=True).inverse


def _inverse(name: str, A: Tensor, check_errors: bool) -> InvEx:
    need_matrices(name, A, square=True)
    LU, pivots, info = factored(name, A)
    if check_errors:
        raise_if_failed(name, info, _SINGULAR, "gt.linalg.pinv returns the pseudoinverse")
    return InvEx(lu_solve(LU, pivots, identity(A)), info)


@function(namespace=LINALG)
def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """Solve `A @ X = B` for triangles A; zeros on the diagonal are not checked for.

    Args:
        A: matrices [..., n, n], of which one triangle is read.
        B: the right-hand side [..., n, k]; batch axes broadcast.
        upper: whether A is an upper triangle.
        left: False to solve `X @ A = B` for B [..., k, n].
        unitriangular: whether to assume ones on A's diagonal.

    >>> triangle = gt.tensor([[1.0, 2.0], [0.0, 2.0]])
    >>> gt.linalg.solve_triangular(triangle, gt.tensor([[5.0], [4.0]]), upper=True)
    tensor([[1.],
            [2.]], dtype=float32)
    """
    name = "linalg.solve_triangular"
    need_matrices(name, A, square=True)
    need_matrices(name, B)
    need_same_dtype(name, A, B)
    if B.shape[-2 if left else -1] != A.shape[-1]:
        equation = "A @ X = B" if left else "X @ A = B"
        raise ValueError(f"{name}: shapes {A.shape} and {B.shape} do not fit in {equation}")
    A, B = one_batch(A, B)
    if left:
        return primitives._linalg_solve_triangular(A, B, upper, unitriangular)
    return primitives._linalg_solve_triangular(A.mT, B.mT, not upper, unitriangular).mT


@function(namespace=LINALG)
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """Return the inverse of a tensor as a map from its last axes to its first `ind` axes.

    The product of the first `ind` lengths must equal the product of the others.

    >>> gt.linalg.tensorinv(gt.eye(6).reshape(2, 3, 6)).shape
    (6, 2, 3)
    """
    if ind < 1:
        raise ValueError(f"linalg.tensorinv: ind is {ind}, expected 1 or more")
    first, last = A.shape[:ind], A.shape[ind:]
    if math.prod(first) != math.prod(last):
        raise ValueError(f"linalg.tensorinv: axes {first} and {last} differ in their product")
    flat = A.reshape(math.prod(first), math.prod(last))
    return _inverse("linalg.tensorinv", flat, check_errors=True).inverse.reshape((*last, *first))


@function(namespace=LINALG)
def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """Solve `tensordot(A, X, X.ndim) = B`.

    Args:
        A: a tensor whose first axes are B's and whose remaining axes, X's, have the same product.
        B: the right-hand side.
        dims: axes of A to move to the end first.

    >>> gt.linalg.tensorsolve(gt.eye(6).reshape(2, 3, 6), gt.ones(2, 3)).shape
    (6,)
    """
    if dims is not None:
        A = A.movedim(tuple(dims), tuple(range(-len(dims), 0)))
    shape = A.shape[B.ndim :]
    if B.numel() * math.prod(shape) != A.numel() or B.numel() != math.prod(shape):
        raise ValueError(f"linalg.tensorsolve: shapes {A.shape} and {B.shape} do not fit")
    flat = A.reshape(B.numel(), math.prod(shape))
    return _solve("linalg.tensorsolve", flat, B.reshape(-1), True, True).result.reshape(shape)
