"""Variances, standard deviations, covariances and correlations."""

from __future__ import annotations

from typing import Any

import gt
from gt._gt import Tensor, primitives
from gt.ops.annotations import Dims
from gt.ops.linalg_norms import power
from gt.ops.registry import function, operation
from gt.ops.sizes import need_axes


@operation
def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Return the variance over axes: squared distances from the mean over `n - correction`.

    Args:
        input: a tensor of floats.
        dim: the axis or axes; all by default. `var(False)` is `var(unbiased=False)`.
        unbiased: False for a correction of 0, True for 1.
        keepdim: whether these axes are kept with length 1.
        correction: the degrees of freedom that are subtracted; 1 by default.

    >>> gt.var(gt.tensor([1.0, 3.0]))
    tensor(2., dtype=float32)
    """
    return _variance(*_spread("var", input, dim, unbiased, keepdim, correction))


@operation
def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Return the standard deviation over axes: the root of the variance; parameters as for `var`.

    >>> gt.std(gt.tensor([1.0, 3.0]), correction=0)
    tensor(1., dtype=float32)
    """
    given = _spread("std", input, dim, unbiased, keepdim, correction)
    whole = isinstance(given[-1], int) and not input.dtype.is_complex
    return primitives.std(*given) if whole else power(_variance(*given), 0.5)


def _spread(
    name: str, input: Tensor, dim: Any, unbiased: Any, keepdim: bool, correction: Any
) -> tuple[Tensor, Any, bool, Any]:
    """Return the tensor, its axes, whether to keep them, and the correction."""
    if isinstance(dim, bool):  # PyTorch's form var(unbiased)
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        raise ValueError(
            f"{name}: give unbiased or correction, which have the same meaning, not both"
        )
    if unbiased is not None:
        correction = int(unbiased)
    return input, dim, keepdim, 1 if correction is None else correction


def _variance(input: Tensor, dim: Dims, keepdim: bool, correction: float) -> Tensor:
    """Return the variance; if the correction is no int, from that with correction 0."""
    if input.dtype.is_complex:
        real, imag = (
            _variance(of, dim, keepdim, correction) for of in (gt.real(input), gt.imag(input))
        )
        return real + imag
    if isinstance(correction, int):
        return primitives.var(input, dim, keepdim, correction)
    wide = input.float() if input.dtype.itemsize == 2 else input
    plain = primitives.var(wide, dim, keepdim, 0)
    count = wide.numel() / max(plain.numel(), 1)
    left = count - correction
    return (plain * (count / left if left > 0 else float("inf")))._cast(input.dtype)


@function
def var_mean(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the variance and the mean; parameters as for `var`.

    >>> gt.var_mean(gt.tensor([1.0, 3.0]))
    (tensor(2., dtype=float32), tensor(2., dtype=float32))
    """
    given = _spread("var_mean", input, dim, unbiased, keepdim, correction)
    return _variance(*given), primitives.mean(*given[:3])


@function
def std_mean(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the standard deviation and the mean; parameters as for `var`.

    >>> gt.std_mean(gt.tensor([1.0, 3.0]), correction=0)
    (tensor(1., dtype=float32), tensor(2., dtype=float32))
    """
    given = _spread("std_mean", input, dim, unbiased, keepdim, correction)
    return std(input, given[1], None, keepdim, correction=given[3]), primitives.mean(*given[:3])


@operation
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """Return the covariances of variables, the rows of a matrix; its columns are observations.

    Args:
        input: a matrix; a tensor of one axis is one variable.
        correction: the degrees of freedom that are subtracted.
        fweights: the number of times that each observation counts, integers.
        aweights: the weight of each observation, floats.

    >>> gt.cov(gt.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]], dtype=float32)
    """
    need_axes("cov", input, 0, 2)
    if input.dtype == gt.bool:
        raise TypeError("cov: expected numbers, not bool")
    x = input if input.ndim == 2 else input.reshape(1, -1)
    weights = _weights(x.shape[1], fweights, aweights)
    count = x.shape[1] if weights is None else weights.sum()
    mean = (x if weights is None else x * weights).sum(1, keepdim=True) / count
    left = count - correction
    if weights is not None and aweights is not None and correction != 0:
        left = count - correction * (weights * aweights).sum() / count
    centered = x - mean
    products = centered @ (centered if weights is None else centered * weights).mH
    return (products / (left.relu() if isinstance(left, Tensor) else max(left, 0))).squeeze()


def _weights(count: int, fweights: Tensor | None, aweights: Tensor | None) -> Tensor | None:
    """Return the product of both weights of observations, or the one that is given."""
    for name, weights, floats in (("fweights", fweights, False), ("aweights", aweights, True)):
        if weights is None:
            continue
        if weights.dtype.is_floating_point != floats or weights.dtype == gt.bool:
            kind = "floats" if floats else "integers"
            raise TypeError(f"cov: {name} must hold {kind}, not {weights.dtype.name}")
        if weights.ndim > 1 or weights.numel() != count:
            raise ValueError(
                f"cov: {name} of shape {weights.shape} does not fit {count} observations"
            )
    if fweights is None or aweights is None:
        return aweights if fweights is None else fweights
    return fweights * aweights


@operation
def corrcoef(input: Tensor) -> Tensor:
    """Return the correlations of variables, the rows of a matrix: covariances over deviations.

    >>> gt.corrcoef(gt.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]], dtype=float32)
    """
    covariances = cov(input)
    if covariances.ndim == 0:
        return covariances / covariances
    deviations = primitives.sqrt(gt.diagonal(covariances))
    found = covariances / deviations.unsqueeze(1) / deviations
    if not found.dtype.is_complex:
        return found.clamp(-1, 1)
    return primitives.view_as_complex(primitives.view_as_real(found).clamp(-1, 1))
