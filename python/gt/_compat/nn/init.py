"""Initialization of parameters, with PyTorch's functions and definitions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import gt
from gt._gt import Tensor
from gt._lines import warn
from gt._public import show_callers
from gt.autograd import no_grad

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

_GAINS = {
    **dict.fromkeys(
        [
            "linear",
            "conv1d",
            "conv2d",
            "conv3d",
            "conv_transpose1d",
            "conv_transpose2d",
            "conv_transpose3d",
            "sigmoid",
        ],
        1.0,
    ),
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the recommended gain for a nonlinearity.

    Args:
        nonlinearity: a name such as "relu".
        param: the negative slope of "leaky_relu", 0.01 by default.
    """
    if nonlinearity != "leaky_relu":
        if nonlinearity not in _GAINS:
            raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
        return _GAINS[nonlinearity]
    if param is None:
        param = 0.01
    elif isinstance(param, bool) or not isinstance(param, (int, float)):
        raise ValueError(f"negative_slope {param} not a valid number")
    return math.sqrt(2.0 / (1 + param**2))


def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: gt.Generator | None = None
) -> Tensor:
    """Fill with random numbers from a uniform distribution on [a, b)."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: gt.Generator | None = None
) -> Tensor:
    """Fill with random numbers from a normal distribution."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: gt.Generator | None = None,
) -> Tensor:
    """Fill with random numbers from a normal distribution truncated to [a, b].

    Applies the inverse of the normal distribution function to uniform random numbers.
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of "
            "values may be incorrect.",
        )
    low, high = (math.erf((bound - mean) / std / math.sqrt(2.0)) for bound in (a, b))
    with no_grad():
        tensor.uniform_(low, high, generator=generator)
        tensor.erfinv_().mul_(std * math.sqrt(2.0)).add_(mean)
        return tensor.clamp_(min=a, max=b)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one number."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    with no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        return tensor.copy_(gt.eye(*tensor.shape, dtype=tensor.dtype))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill a convolution's kernels so that it returns its input, channel by channel."""
    if tensor.ndimension() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    out = tensor.shape[0]
    if out % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    import numpy as np

    kernels = np.zeros(tuple(tensor.shape), np.float32)
    middle = tuple(length // 2 for length in tensor.shape[2:])
    for group in range(groups):
        for channel in range(min(out // groups, tensor.shape[1])):
            place = (group * (out // groups) + channel, channel, *middle)
            kernels[place] = 1
    with no_grad():
        return tensor.copy_(gt.from_numpy(kernels))


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Return the number of inputs of each output, and the number of outputs of each input."""
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: gt.Generator | None = None
) -> Tensor:
    """Fill with uniform random numbers of variance gain² · 2 / (fan in + fan out).

    Glorot and Bengio, AISTATS 2010.
    """
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(
    tensor: Tensor, gain: float = 1.0, generator: gt.Generator | None = None
) -> Tensor:
    """Fill with normal random numbers of variance gain² · 2 / (fan in + fan out)."""
    std = gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return normal_(tensor, 0.0, std, generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    """Return the standard deviation of He et al., ICCV 2015; None for an empty tensor."""
    if 0 in tensor.shape:
        warn("Initializing zero-element tensors is a no-op")
        return None
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: gt.Generator | None = None,
) -> Tensor:
    """Fill with uniform random numbers of variance gain² / fan (He et al., ICCV 2015).

    Args:
        tensor: the tensor, which is filled in place.
        a: the negative slope of "leaky_relu".
        mode: "fan_in" keeps the variance in the forward pass, "fan_out" in the backward pass.
        nonlinearity: the nonlinearity that determines the gain; see `calculate_gain`.
        generator: the generator of the random numbers.
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: gt.Generator | None = None,
) -> Tensor:
    """Fill with normal random numbers of variance gain² / fan (He et al., ICCV 2015)."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: gt.Generator | None = None) -> Tensor:
    """Fill with a random orthogonal matrix; axes after the first are flattened (Saxe, 2014)."""
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.shape[0]
    with no_grad():
        flat = gt.zeros(rows, tensor.numel() // rows, dtype=tensor.dtype)
        flat.normal_(0, 1, generator=generator)
        is_wide = rows < flat.shape[1]
        q, r = gt.linalg.qr(flat.T if is_wide else flat)
        # With the signs of R, the distribution over orthogonal matrices is uniform.
        q = q * r.diagonal().sign()
        q = q.T if is_wide else q
        return tensor.copy_((q * gain).reshape(tensor.shape))


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: gt.Generator | None = None
) -> Tensor:
    """Fill a matrix with normal random numbers, and zeros in each column (Martens, 2010)."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        order = gt.rand(rows, columns, generator=generator).argsort(0)
        return tensor.masked_fill_(order < zeros, 0)


def _deprecated(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function under its older name, which warns."""
    new = function.__name__
    old = new.removesuffix("_")

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Tensor:
        warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.",
            FutureWarning,
        )
        return function(*args, **kwargs)

    wrapped.__name__ = old
    return wrapped


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)

show_callers(globals())
