"""In-place methods as functions: `gt.exp_(x)` is `x.exp_()`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gt
from gt._gt import Tensor
from gt.ops.registry import function, operation
from gt.ops.sizes import filled, method

_NAMES = """abs_ acos_ acosh_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ atan_
atanh_ ceil_ conj_physical_ cos_ cosh_ deg2rad_ erf_ erfc_ exp2_ exp_ expm1_ fix_ floor_ frac_ i0_
log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_ round_ rsqrt_
sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_""".split()


def _of_method(name: str) -> Callable[..., Tensor]:
    def in_place(input: Tensor) -> Tensor:
        return getattr(input, name)()

    in_place.__name__ = in_place.__qualname__ = name
    in_place.__doc__ = f"""Store `gt.{name.removesuffix("_")}` of a tensor in it: `input.{name}()`.

    >>> x = gt.tensor([0.5])
    >>> gt.{name}(x) is x
    True
    """
    return in_place


for _name in _NAMES:
    function(_of_method(_name))


@function
def fill_(input: Tensor, value: Tensor | float) -> Tensor:
    """Store a number in all elements of a tensor.

    >>> gt.fill_(gt.zeros(2), 3.0)
    tensor([3., 3.], dtype=float32)
    """
    return input.fill_(value)


@function
def clamp_(
    input: Tensor, min: Tensor | float | None = None, max: Tensor | float | None = None
) -> Tensor:
    """Store the result of `clamp` in the tensor.

    >>> gt.clamp_(gt.tensor([-1.0, 0.5]), 0.0)
    tensor([0. , 0.5], dtype=float32)
    """
    return input.clamp_(min, max)


@function
def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """Store the result of `threshold` in the tensor.

    >>> gt.threshold_(gt.tensor([1.0, 3.0]), 2, 0)
    tensor([0., 3.], dtype=float32)
    """
    return input.copy_(gt.threshold(input, threshold, value))


@function
def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Store the result of `dropout` in the tensor.

    >>> gt.dropout_(gt.ones(2), 0.5, False)
    tensor([1., 1.], dtype=float32)
    """
    return input.copy_(gt.dropout(input, p, train))


def _with_operands(name: str) -> Callable[..., Tensor]:
    def in_place(input: Tensor, *operands: Any, **options: Any) -> Tensor:
        return getattr(input, name)(*operands, **options)

    in_place.__name__ = in_place.__qualname__ = name
    in_place.__doc__ = f"""Store `gt.{name.removesuffix("_")}` of a tensor and operands in it."""
    return in_place


for _name in "addmv_ clamp_max_ clamp_min_ clip_ gcd_ index_put_ lcm_ ldexp_ xlogy_".split():
    function(_with_operands(_name))


@operation
def detach_(input: Tensor) -> Tensor:
    """Detach a tensor from its history: it becomes a leaf that requires no gradients.

    >>> x = gt.ones(1, requires_grad=True) * 2
    >>> gt.detach_(x).requires_grad
    False
    """
    if input._is_view():
        raise RuntimeError(
            "detach_: the tensor is a view, which cannot be detached in place\n  hint: detach()"
        )
    return input._become(input.detach()).requires_grad_(False)


@operation
def apply_(input: Tensor, callable: Any) -> Tensor:
    """Replace each element by a Python function of it; slow, and waits for the values.

    >>> gt.ones(2).apply_(lambda value: value + 1)
    tensor([2., 2.], dtype=float32)
    """
    values = [callable(value) for value in input.reshape(-1).tolist()]
    return input.copy_(gt.tensor(values, dtype=input.dtype).reshape(input.shape))


@operation
def map_(input: Tensor, tensor: Tensor, callable: Any) -> Tensor:
    """Replace each element by a Python function of it and the element of another tensor.

    >>> gt.ones(2).map_(gt.ones(2), lambda one, other: one + other)
    tensor([2., 2.], dtype=float32)
    """
    others = tensor.expand(input.shape).reshape(-1).tolist()
    values = [callable(*pair) for pair in zip(input.reshape(-1).tolist(), others, strict=True)]
    return input.copy_(gt.tensor(values, dtype=input.dtype).reshape(input.shape))


@method
def set_(self: Tensor, source: Tensor | None = None) -> Tensor:
    """Share the memory of another tensor, and its in-place changes; without one, become empty.

    >>> x, y = gt.zeros(2), gt.ones(3)
    >>> x.set_(y).add_(1)
    tensor([2., 2., 2.], dtype=float32)
    >>> y
    tensor([2., 2., 2.], dtype=float32)
    """
    if source is not None and not isinstance(source, Tensor):
        raise TypeError(f"set_: source is of type {type(source).__name__}, expected a tensor")
    if source is not None and source.dtype != self.dtype:
        raise TypeError(f"set_: source is of dtype {source.dtype}, expected {self.dtype}")
    self.data = filled(self, (0,), 0) if source is None else source
    return self
