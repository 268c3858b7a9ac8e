"""Linear algebra, with the factors that PyTorch saves for derivatives."""

from __future__ import annotations

import gt
from gt._gt import torch_device
from gt.torch.kernels import kernel, raw


@kernel("_linalg_svd")
def svd(A, full_matrices=False, compute_uv=True, *, driver=None):
    if compute_uv:
        return gt.linalg.svd(A, full_matrices)
    none = gt.zeros(0, dtype=A.dtype)
    return none, gt.linalg.svdvals(A), none


@kernel("_linalg_eigh")
def eigh(A, UPLO="L", compute_v=True):
    if compute_v:
        return gt.linalg.eigh(A, UPLO)
    return gt.linalg.eigvalsh(A, UPLO), gt.zeros(0, dtype=A.dtype)


@kernel("_linalg_eigvals")
def eigvals(self):
    return gt.linalg.eigvals(self)


def _with_factors(name, *outs):
    """Register an operator that also returns an LU factorization, and its variant with `out`.

    PyTorch's derivatives expect the factors of the transpose if the matrix is contiguous and real.
    """

    def with_factors(function):
        def plain(A):
            return *function(A), *gt.linalg.lu_factor_ex(A)[:2]

        def turned(A):
            return *function(A), *gt.linalg.lu_factor_ex(A.mT)[:2]

        def choose(writes):
            kernels = [torch_device.Kernel(name, of, False, writes) for of in (plain, turned)]

            def kernel(A, **outs):
                return kernels[A.is_contiguous() and not A.is_complex()](A, **outs)

            return kernel

        raw(name)(choose(None))
        raw(f"{name}.{outs[0]}")(choose(list(outs)))
        return function

    return with_factors


@_with_factors("_linalg_det", "result", "LU", "pivots")
def det(A):
    return (gt.linalg.det(A),)


@_with_factors("_linalg_slogdet", "sign", "logabsdet", "LU", "pivots")
def slogdet(A):
    return gt.linalg.slogdet(A)


@kernel("_linalg_solve_ex")
def solve_ex(A, B, *, left=True, check_errors=False):
    result, info = gt.linalg.solve_ex(A, B, left=left, check_errors=check_errors)
    return result, *gt.linalg.lu_factor_ex(A)[:2], info
