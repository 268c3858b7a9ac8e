"""Matrix products whose result has a dtype of its own."""

from __future__ import annotations

import gt
from gt.torch.kernels import kernel


def _wide(*tensors, dtype):
    return [tensor.to(dtype) for tensor in tensors]


@kernel("mm.dtype", "bmm.dtype")
def matmul(self, mat2, out_dtype):
    return gt.matmul(*_wide(self, mat2, dtype=out_dtype))


@kernel("addmm.dtype")
def addmm(self, mat1, mat2, out_dtype, *, beta=1, alpha=1):
    return gt.addmm(*_wide(self, mat1, mat2, dtype=out_dtype), beta=beta, alpha=alpha)


@kernel("baddbmm.dtype")
def baddbmm(self, batch1, batch2, out_dtype, *, beta=1, alpha=1):
    return gt.baddbmm(*_wide(self, batch1, batch2, dtype=out_dtype), beta=beta, alpha=alpha)
