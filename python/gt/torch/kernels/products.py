"""Matrix products."""

from __future__ import annotations

import gt
from gt._gt import primitives
from gt.torch.kernels import kernel


def _check(name, axes, **operands):
    """Raise `RuntimeError` unless all operands have this number of axes."""
    for of, tensor in operands.items():
        if tensor.ndim != axes:
            raise RuntimeError(
                f"{name}: {of} must have {axes} axes, it has {tensor.ndim}: {tensor.shape}"
            )


@kernel("mm", operation="matmul", rank=2)
def mm(self, mat2):
    _check("mm", 2, self=self, mat2=mat2)
    return primitives.matmul(self, mat2)


@kernel("bmm", operation="matmul", rank=3)
def bmm(self, mat2):
    _check("bmm", 3, self=self, mat2=mat2)
    if self.shape[0] != mat2.shape[0]:
        raise RuntimeError(f"bmm: batches of {self.shape[0]} and {mat2.shape[0]} do not fit")
    return primitives.matmul(self, mat2)


@kernel("addmm")
def addmm(self, mat1, mat2, *, beta=1, alpha=1):
    _check("addmm", 2, mat1=mat1, mat2=mat2)
    if self.ndim > 2:
        raise RuntimeError(f"addmm: self of shape {self.shape} does not expand to a matrix")
    return _added(self, primitives.matmul(mat1, mat2), beta, alpha)


@kernel("baddbmm")
def baddbmm(self, batch1, batch2, *, beta=1, alpha=1):
    _check("baddbmm", 3, batch1=batch1, batch2=batch2)
    return _added(self, primitives.matmul(batch1, batch2), beta, alpha)


def _added(given, product, beta, alpha):
    """Return beta * given + alpha * product."""
    if not (product.is_floating_point() or product.is_complex()):
        # Factors of integers are integers.
        beta, alpha = int(beta), int(alpha)
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        # `given` is ignored, even if it is NaN.
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
