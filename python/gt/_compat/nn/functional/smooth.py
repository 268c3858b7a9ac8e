"""Smooth activations, exponential linear units and softmax."""

from __future__ import annotations

import gt
from gt._gt import Tensor, primitives, rand_like
from gt._lines import warn
from gt.ops.annotations import DType
from gt.ops.elementwise import softplus
from gt.ops.registry import function

from .common import (
    NN,
    also_here,
    also_in_place,
    check_slope,
    given,
    in_float32,
    need_floats,
    wide,
)

also_here(softplus)


def _elu(x: Tensor, alpha: float, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    """Return scale * x for positive x, scale * alpha * (exp(input_scale * x) - 1) elsewhere."""
    positive = x > 0
    # exp must not see large values: its infinite gradient times 0 would be NaN.
    curved = (gt.where(positive, 0, x) * input_scale).expm1() * (alpha * scale)
    return gt.where(positive, x * scale, curved)


@function(namespace=NN)
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x where it is positive, alpha * (exp(x) - 1) elsewhere (Clevert et al., 2015).

    Args:
        input: floats.
        alpha: minus the limit at minus infinity.
        inplace: whether to store the result in the input.

    >>> gt.nn.functional.elu(gt.tensor([-1.0, 2.0]))
    tensor([-0.63212055,  2.        ], dtype=float32)
    """
    check_slope("elu_", input, alpha, inplace)
    return given(input, _elu(wide("elu", input), alpha), inplace, "elu_")


@function(namespace=NN)
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x where it is positive, alpha * (exp(x / alpha) - 1) elsewhere (Barron, 2017).

    Args:
        input: floats.
        alpha: minus the limit at minus infinity; not 0.
        inplace: whether to store the result in the input.

    >>> gt.nn.functional.celu(gt.tensor([-1.0, 2.0]), 2.0)
    tensor([-0.78693867,  2.        ], dtype=float32)
    """
    check_slope("celu_", input, alpha, inplace)
    if alpha == 0:
        raise ValueError("celu: alpha is 0, expected another number: x is divided by it")
    result = _elu(wide("celu", input), alpha, input_scale=1 / alpha)
    return given(input, result, inplace, "celu_")


@function(namespace=NN)
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return a scaled elu that keeps mean 0 and variance 1 (Klambauer et al., 2017).

    >>> gt.nn.functional.selu(gt.tensor([-1.0, 1.0]))
    tensor([-1.1113307,  1.050701 ], dtype=float32)
    """
    result = _elu(wide("selu", input), 1.6732632423543772, scale=1.0507009873554805)
    return given(input, result, inplace, "selu_")


@function(namespace=NN)
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x * sigmoid(x), also known as swish.

    >>> gt.nn.functional.silu(gt.tensor([0.0, 1.0]))
    tensor([0.       , 0.7310586], dtype=float32)
    """
    if not input.dtype.is_complex:
        need_floats("silu", input)
    return given(input, primitives.silu(input), inplace, "silu_")


@function(namespace=NN)
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x * tanh(log(1 + exp(x))) (Misra, 2019).

    >>> gt.nn.functional.mish(gt.tensor([0.0, 1.0]))
    tensor([0.       , 0.8650984], dtype=float32)
    """
    x = wide("mish", input)
    return given(input, x * softplus(x).tanh(), inplace, "mish_")


@function(namespace=NN)
def logsigmoid(input: Tensor) -> Tensor:
    """Return log(1 / (1 + exp(-x))), exact for x of any size.

    >>> gt.nn.functional.logsigmoid(gt.tensor([0.0, -100.0]))
    tensor([  -0.6931472, -100.       ], dtype=float32)
    """
    x = wide("logsigmoid", input)
    return given(input, x.minimum(0) - (-x.abs()).exp().log1p(), False, "logsigmoid")


@function(namespace=NN)
def softsign(input: Tensor) -> Tensor:
    """Return x / (1 + |x|).

    >>> gt.nn.functional.softsign(gt.tensor([-1.0, 3.0]))
    tensor([-0.5 ,  0.75], dtype=float32)
    """
    return input / (input.abs() + 1)


@function(namespace=NN)
def tanhshrink(input: Tensor) -> Tensor:
    """Return x - tanh(x).

    >>> gt.nn.functional.tanhshrink(gt.tensor([0.0, 1.0]))
    tensor([0.        , 0.23840582], dtype=float32)
    """
    return input - input.tanh()


@function(namespace=NN)
@in_float32
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Return the first half of an axis times sigmoid of the second half (Dauphin et al., 2016).

    >>> gt.nn.functional.glu(gt.tensor([3.0, 0.0]))
    tensor([1.5], dtype=float32)
    """
    if input.ndim == 0:
        raise ValueError("glu: input has no axes, expected one or more")
    length = input.shape[dim]
    if length % 2:
        raise ValueError(f"glu: axis {dim} has length {length}, expected an even one")
    half = length // 2
    return input.narrow(dim, 0, half) * input.narrow(dim, half, half).sigmoid()


@function(namespace=NN, autocast="float32")
def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """Return exp(x) divided by its sum along an axis.

    Args:
        input: the tensor.
        dim: the axis.
        _stacklevel: the stack level of the warning that no axis is given.
        dtype: the dtype that the values are cast to first.

    >>> gt.nn.functional.softmax(gt.tensor([0.0, 0.0]), dim=0)
    tensor([0.5, 0.5], dtype=float32)
    """
    return gt.softmax(input, _axis("softmax", input, dim, _stacklevel), dtype=dtype)


@function(namespace=NN, autocast="float32")
def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """Return exp(-x) divided by its sum along an axis; parameters as for `softmax`.

    >>> gt.nn.functional.softmin(gt.tensor([0.0, 1.0]), dim=0)
    tensor([0.7310586 , 0.26894143], dtype=float32)
    """
    return gt.softmax(-input, _axis("softmin", input, dim, _stacklevel), dtype=dtype)


@function(namespace=NN, autocast="float32")
def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """Return the logarithm of softmax, exact where softmax is near 0; parameters as for `softmax`.

    >>> gt.nn.functional.log_softmax(gt.tensor([0.0, 0.0]), dim=0)
    tensor([-0.6931472, -0.6931472], dtype=float32)
    """
    return gt.log_softmax(input, _axis("log_softmax", input, dim, _stacklevel), dtype=dtype)


def _axis(name: str, input: Tensor, dim: int | None, level: int) -> int:
    """Return the axis, or warn and return PyTorch's default."""
    if dim is not None:
        return dim
    dim = 0 if input.ndim in (0, 1, 3) else 1
    warn(f"{name}: no axis is given, using {dim}: give dim={dim}")
    return dim


@function(namespace=NN, autocast="inside")
@in_float32
def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Return differentiable samples of the categories of logits (Jang et al., 2016).

    Args:
        logits: log probabilities, which need not be normalized.
        tau: the temperature; the lower, the closer samples are to one-hot vectors.
        hard: whether to return one-hot samples, with the gradient of the soft ones.
        eps: accepted as in PyTorch; it has no effect.
        dim: the axis of the categories.

    >>> gt.nn.functional.gumbel_softmax(gt.tensor([0.0, 100.0]), hard=True)
    tensor([0., 1.], dtype=float32)
    """
    noise = -(-rand_like(logits).log()).log()
    soft = gt.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    largest = soft.argmax(dim, keepdim=True)
    zeros, one = gt.zeros_like(soft), gt.ones_like(largest, dtype=soft.dtype)
    return zeros.scatter_add(dim, largest, one) - soft.detach() + soft


also_in_place(elu, celu, selu)
