"""Norms of vectors, and normalization by them."""

from __future__ import annotations

from gt._gt import Tensor, is_grad_enabled, primitives
from gt.ops.annotations import Dims, DType
from gt.ops.linalg_norms import matrix_norm, vector_norm
from gt.ops.registry import function, operation
from gt.ops.sizes import axis_of, need_axes


@operation(autocast="float32")
def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: Dims = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> Tensor:
    """Return the norm of vectors: `sum(|x| ** p) ** (1 / p)`, over axes or over all.

    "fro" is the same as 2, and "nuc" the sum of the singular values of a matrix. See
    `gt.linalg.vector_norm` and `gt.linalg.matrix_norm`.

    Args:
        input: the tensor.
        p: the order, a number, "fro" or "nuc".
        dim: the axis or axes; all by default.
        keepdim: whether these axes are kept with length 1.
        dtype: the dtype that the values are cast to first.

    >>> gt.norm(gt.tensor([[3.0, 4.0], [6.0, 8.0]]), dim=1)
    tensor([ 5., 10.], dtype=float32)
    """
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise ValueError(f"norm: p is {p!r}, expected a number, 'fro' or 'nuc'")
    whole = dim is None or isinstance(dim, int) or len(dim) <= 2
    if not isinstance(p, str) or (p == "fro" and whole):
        order = 2 if p is None or isinstance(p, str) else p
        return vector_norm(input, order, dim, keepdim, dtype=dtype)
    axes = tuple(range(input.ndim)) if dim is None else dim
    return matrix_norm(input, p, axes, keepdim, dtype=dtype)


@operation(in_place=True, autocast="float32")
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Scale down the slices along an axis whose norm of order p exceeds `maxnorm`, to `maxnorm`.

    Args:
        input: a tensor of two axes or more.
        p: the order of the norm, above 0.
        dim: the axis of the slices.
        maxnorm: the largest norm.

    >>> gt.renorm(gt.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1)
    tensor([[0.6, 0.8],
            [0.3, 0.4]], dtype=float32)
    """
    need_axes("renorm", input, 2)
    if p <= 0 or maxnorm < 0:
        raise ValueError(f"renorm: p is {p} and maxnorm {maxnorm}, expected above 0 and 0 or more")
    kept = axis_of("renorm", dim, input.ndim)
    others = tuple(axis for axis in range(input.ndim) if axis != kept)
    wide = input.float() if input.dtype.itemsize == 2 else input
    norms = vector_norm(wide, p, others, True)
    scale = primitives.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0)
    return (wide * scale)._cast(input.dtype)


@function(namespace="gt.nn.functional", autocast="float32")
def normalize(
    input: Tensor,
    p: float = 2.0,
    dim: Dims = 1,
    eps: float = 1e-12,
    out: Tensor | None = None,
) -> Tensor:
    """Divide vectors by their norm of order p, or by `eps` where the norm is smaller.

    Args:
        input: the vectors, along `dim`.
        p: the order of the norm.
        dim: the axis or axes of a vector.
        eps: the least divisor.
        out: a tensor that is resized and receives the result; without gradients.

    >>> gt.nn.functional.normalize(gt.tensor([[3.0, 4.0]]))
    tensor([[0.6, 0.8]], dtype=float32)
    """
    result = input / primitives.maximum(vector_norm(input, p, dim, True), eps)
    return result if out is None else _stored("normalize", result, out)


def _stored(name: str, result: Tensor, out: Tensor) -> Tensor:
    """Store a result in the `out` tensor of the caller; raise if it needs gradients."""
    if is_grad_enabled() and (result.requires_grad or out.requires_grad):
        raise RuntimeError(
            f"{name}: functions with out=... arguments don't support automatic differentiation, "
            "but one of the arguments requires grad\n  hint: leave out=..., or use gt.no_grad()"
        )
    if out.shape != result.shape:
        out.resize_(result.shape)
    return out.copy_(result)
