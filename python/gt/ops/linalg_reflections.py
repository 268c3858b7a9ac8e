"""Householder reflections, and the QR and LDL factorisations that use them."""

from __future__ import annotations

import gt
from gt._gt import Tensor, primitives
from gt._results import Geqrf, LDLFactor, LDLFactorEx
from gt.ops.create import beside
from gt.ops.linalg_checks import need_matrices, need_same_dtype, one_batch, raise_if_failed
from gt.ops.linalg_factors import LINALG
from gt.ops.registry import function, operation


@operation(autocast="float32")
def geqrf(input: Tensor) -> Geqrf:
    """Return the QR factorisation of matrices [..., m, n] as LAPACK's geqrf does.

    R is the upper triangle of `a`; below it and in `tau` [..., min(m, n)] are the reflections,
    from which `linalg.householder_product` makes Q.

    >>> a, tau = gt.geqrf(gt.eye(2))
    >>> a.shape, tau.shape
    ((2, 2), (2,))
    """
    need_matrices("geqrf", input)
    return Geqrf(*primitives._linalg_geqrf(input))


@function(namespace=LINALG)
def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """Multiply reflections `I - tau[i] * v @ v.mH`; return the first n columns of the product.

    Args:
        A: matrices [..., m, n], m >= n; v is column i below the diagonal, after zeros and a 1.
        tau: one factor for each of the first k <= n columns, [..., k].

    >>> gt.linalg.householder_product(gt.eye(2), gt.zeros(2))
    tensor([[1., 0.],
            [0., 1.]], dtype=float32)
    """
    return _product("linalg.householder_product", A, tau)


@operation(autocast="float32")
def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """Multiply reflections; see `gt.linalg.householder_product`.

    >>> gt.orgqr(gt.eye(2), gt.zeros(2)).shape
    (2, 2)
    """
    return _product("orgqr", input, input2)


def _product(name: str, A: Tensor, tau: Tensor) -> Tensor:
    _check(name, A, tau)
    rows, columns = A.shape[-2:]
    if columns > rows:
        raise ValueError(f"{name}: shape {A.shape} has more columns than rows")
    with beside(A):
        start = gt.eye(rows, columns, dtype=A.dtype)
    start = primitives.where(start == start, start, A)  # the identity, with a gradient of zeros
    return _reflected(A, tau, start, adjoint=False)


def _check(name: str, A: Tensor, tau: Tensor) -> None:
    need_matrices(name, A)
    need_same_dtype(name, A, tau)
    if tau.ndim != A.ndim - 1 or tau.shape[:-1] != A.shape[:-2] or tau.shape[-1] > A.shape[-1]:
        raise ValueError(f"{name}: tau of shape {tau.shape} does not fit columns of {A.shape}")


def _reflected(A: Tensor, tau: Tensor, C: Tensor, adjoint: bool) -> Tensor:
    """Multiply C by each reflection in turn."""
    count = tau.shape[-1]
    with beside(A):
        vectors = A.tril(-1) + gt.eye(*A.shape[-2:], dtype=A.dtype)
    tau = gt.conj(tau) if adjoint else tau
    for i in range(count) if adjoint else reversed(range(count)):
        v = vectors[..., i : i + 1]
        C = C - tau[..., i : i + 1, None] * v @ (v.mH @ C)
    return C


@operation(autocast="float32")
def ormqr(
    input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """Multiply matrices by the square Q of a product of reflections: `Q @ other`.

    Args:
        input: reflections [..., m, k], as `geqrf` returns them.
        tau: their factors [..., k].
        other: matrices [..., m, n], or [..., n, m] for `left=False`.
        left: False for `other @ Q`.
        transpose: whether to multiply by `Q.mH`.

    >>> gt.ormqr(gt.eye(2), gt.zeros(2), gt.ones(2, 1))
    tensor([[1.],
            [1.]], dtype=float32)
    """
    _check("ormqr", input, tau)
    need_same_dtype("ormqr", input, other)
    if other.ndim != input.ndim or other.shape[-2 if left else -1] != input.shape[-2]:
        raise ValueError(f"ormqr: shapes {input.shape} and {other.shape} do not fit")
    if left:
        return _reflected(input, tau, other, transpose)
    return _reflected(input, tau, other.mH, not transpose).mH


@function(namespace=LINALG)
def ldl_factor(A: Tensor, *, hermitian: bool = False) -> LDLFactor:
    """Return a lower triangle L and blocks D of symmetric matrices: `A = L @ D @ L.mT`.

    Args:
        A: matrices [..., n, n], of which the lower triangle is read.
        hermitian: whether complex matrices are Hermitian: `A = L @ D @ L.mH`.

    Raises:
        LinAlgError: D has a 0 on the diagonal; the check waits for the values.

    >>> gt.linalg.ldl_factor(gt.eye(2)).pivots
    tensor([1, 2], dtype=int32)
    """
    return LDLFactor(*_ldl("linalg.ldl_factor", A, hermitian, check_errors=True)[:2])


@function(namespace=LINALG)
def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> LDLFactorEx:
    """Return `ldl_factor`'s results, and the index of the first 0 on D's diagonal from 1, or 0.

    Args:
        A: matrices [..., n, n].
        hermitian: as for `ldl_factor`.
        check_errors: whether to raise `LinAlgError` as `ldl_factor` does.

    >>> gt.linalg.ldl_factor_ex(gt.eye(2)).info
    tensor(0, dtype=int32)
    """
    return _ldl("linalg.ldl_factor_ex", A, hermitian, check_errors)


def _ldl(name: str, A: Tensor, hermitian: bool, check_errors: bool) -> LDLFactorEx:
    need_matrices(name, A, square=True)
    result = LDLFactorEx(*primitives._linalg_ldl_factor(A, hermitian))
    if check_errors:
        reason = "D[{code}, {code}] (counted from 1) is 0, so systems cannot be solved with it"
        raise_if_failed(name, result.info, reason, "gt.linalg.ldl_factor_ex returns the factors")
    return result


@function(namespace=LINALG)
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """Solve `A @ X = B` with the factors of A from `ldl_factor`.

    Args:
        LD: the factors [..., n, n].
        pivots: the row swaps [..., n].
        B: the right-hand side [..., n, k]; batch axes broadcast.
        hermitian: the same as for `ldl_factor`.

    >>> gt.linalg.ldl_solve(*gt.linalg.ldl_factor(gt.eye(2)), gt.ones(2, 1)).shape
    (2, 1)
    """
    need_matrices("linalg.ldl_solve", LD, square=True)
    need_matrices("linalg.ldl_solve", B)
    need_same_dtype("linalg.ldl_solve", LD, B)
    if B.shape[-2] != LD.shape[-1]:
        raise ValueError(f"linalg.ldl_solve: shapes {LD.shape} and {B.shape} do not fit")
    LD, B = one_batch(LD, B)
    pivots = pivots.expand(LD.shape[:-1])
    return primitives._linalg_ldl_solve(LD, pivots, B, hermitian)
