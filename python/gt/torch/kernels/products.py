"""Matrix products."""

from __future__ import annotations

import gt
from gt._gt import primitives
from gt.torch.kernels import kernel


@kernel("addmm")
def addmm(self, mat1, mat2, *, beta=1, alpha=1):
    return _added(self, primitives.matmul(mat1, mat2), beta, alpha)


@kernel("baddbmm")
def baddbmm(self, batch1, batch2, *, beta=1, alpha=1):
    return _added(self, primitives.matmul(batch1, batch2), beta, alpha)


def _added(given, product, beta, alpha):
    """Give beta times what was given plus alpha times a product."""
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        # Even what is not a number does not count then.
        return product
    return primitives.add(product, given if beta == 1 else given * beta)


def _wide(*tensors, dtype):
    return [tensor.to(dtype) for tensor in tensors]


@kernel("mm.dtype", "bmm.dtype")
def matmul(self, mat2, out_dtype):
    return gt.matmul(*_wide(self, mat2, dtype=out_dtype))


@kernel("addmm.dtype", "baddbmm.dtype")
def addmm_as(self, mat1, mat2, out_dtype, *, beta=1, alpha=1):
    return addmm(*_wide(self, mat1, mat2, dtype=out_dtype), beta=beta, alpha=alpha)
