"""Tensors of random numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import gt
from gt import _gt
from gt._generator import Generator, default_generator
from gt._gt import Tensor, parse_dtype, primitives
from gt.ops.annotations import DType, Size
from gt.ops.create import beside, creation, lengths
from gt.ops.flat import flat
from gt.ops.precision import float_dtype
from gt.ops.registry import function, operation
from gt.ops.sizes import ints

#: A source of random numbers; None stands for that of `gt.manual_seed`.
Source = Generator | None


def uniform(size: Sequence[int], dtype: DType | None, generator: Source) -> Tensor:
    """Draw uniform numbers in [0, 1); for complex numbers both parts."""
    if _is_complex(dtype):
        return _of_parts(uniform, size, dtype, generator)
    if generator is None:
        return _gt.rand(tuple(size), dtype=dtype)
    return primitives.rand(*_drawn(generator), size, _float(dtype), ())


def gaussian(size: Sequence[int], dtype: DType | None, generator: Source) -> Tensor:
    """Draw numbers from the standard normal distribution.

    The variance of complex numbers is 1 too: half of it in each part.
    """
    if _is_complex(dtype):
        return _of_parts(gaussian, size, dtype, generator) * math.sqrt(0.5)
    if generator is None:
        return _gt.randn(tuple(size), dtype=dtype)
    return primitives.randn(*_drawn(generator), size, _float(dtype), ())


def check_drawn(name: str, low: int, high: int, dtype: gt.dtype) -> None:
    """Raise if a dtype does not represent the integers from low up to but without high."""
    if dtype.is_complex:
        return
    if dtype == gt.bool:
        first, last = 0, 1
    else:
        limits = gt.finfo(dtype) if dtype.is_floating_point else gt.iinfo(dtype)
        first, last = limits.min, limits.max
    if low < first or high - 1 > last:
        raise ValueError(
            f"{name}: {dtype.name} does not have the numbers from {low} up to {high - 1}, only "
            f"those from {first:g} to {last:g}\n  hint: give another dtype"
        )


def integers(low: int, high: int, size: Size, dtype: DType | None, generator: Source) -> Tensor:
    """Draw integers from low up to but without high."""
    dtype = parse_dtype(gt.int64 if dtype is None else dtype)
    if high <= low:
        raise ValueError(f"randint: high is {high}, which must be above low, {low}")
    check_drawn("randint", low, high, dtype)
    if generator is None:
        return _gt.randint(low, high, size, dtype=dtype)
    return primitives.randint(*_drawn(generator), low, high, size, dtype, ())


def _is_complex(dtype: DType | None) -> TypeGuard[DType]:
    return dtype is not None and parse_dtype(dtype).is_complex


def _of_parts(
    draw: Callable[..., Tensor], size: Sequence[int], dtype: DType, source: Source
) -> Tensor:
    """Draw the real and imaginary parts of complex numbers separately."""
    part = gt.float32 if parse_dtype(dtype) == gt.complex64 else gt.float64
    return primitives.view_as_complex(draw((*size, 2), part, source))


def _float(dtype: DType | None) -> Any:
    return parse_dtype(gt.get_default_dtype() if dtype is None else dtype)


def _drawn(generator: Source) -> tuple[int, int]:
    """Return the seed and the number of the next call of a generator, or of the session's."""
    if generator is None:
        return default_generator.next_call()
    if not isinstance(generator, Generator):
        kind = type(generator).__name__
        raise TypeError(f"generator must be a gt.Generator, not {kind}")
    return generator.next_call()


@function
@creation
def rand(*size: Size, generator: Source = None, dtype: DType | None = None) -> Tensor:
    """Draw uniform numbers in [0, 1).

    >>> gt.rand(2, 3).shape
    (2, 3)
    """
    return uniform(lengths("rand", size), dtype, generator)


@function
@creation
def randn(*size: Size, generator: Source = None, dtype: DType | None = None) -> Tensor:
    """Draw numbers from the normal distribution with mean 0 and variance 1.

    >>> gt.randn(2, 3).shape
    (2, 3)
    """
    return gaussian(lengths("randn", size), dtype, generator)


@function
@creation
def randint(
    low: int | None = None,
    high: int | None = None,
    size: Size | None = None,
    *,
    generator: Source = None,
    dtype: DType | None = None,
) -> Tensor:
    """Draw integers from low up to but without high: `randint(high, size)` starts at 0.

    >>> gt.randint(0, 10, (2, 3)).shape
    (2, 3)
    """
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    if high is None or size is None:
        raise TypeError("randint: takes (high, size) or (low, high, size)")
    return integers(low or 0, high, size, dtype, generator)


@function
@creation
def rand_like(
    input: Tensor,
    *,
    generator: Source = None,
    dtype: DType | None = None,
    memory_format: Any = None,
) -> Tensor:
    """Draw uniform numbers in [0, 1), in a tensor's shape.

    >>> gt.rand_like(gt.zeros(2)).shape
    (2,)
    """
    with beside(input):
        return uniform(input.shape, input.dtype if dtype is None else dtype, generator)


@function
@creation
def randn_like(
    input: Tensor,
    *,
    generator: Source = None,
    dtype: DType | None = None,
    memory_format: Any = None,
) -> Tensor:
    """Draw numbers from the standard normal distribution, in a tensor's shape.

    >>> gt.randn_like(gt.zeros(2)).shape
    (2,)
    """
    with beside(input):
        return gaussian(input.shape, input.dtype if dtype is None else dtype, generator)


@function
@creation
def randint_like(
    input: Tensor,
    low: int = 0,
    high: int | None = None,
    *,
    generator: Source = None,
    dtype: DType | None = None,
    memory_format: Any = None,
) -> Tensor:
    """Draw integers, in a tensor's shape: `randint_like(x, high)` starts at 0.

    >>> gt.randint_like(gt.zeros(2), 0, 10).shape
    (2,)
    """
    low, high = (0, low) if high is None else (low, high)
    with beside(input):
        wanted = input.dtype if dtype is None else dtype
        return integers(low, high, input.shape, wanted, generator)


@function
@creation
def randperm(n: int, *, generator: Source = None, dtype: DType | None = None) -> Tensor:
    """Draw a permutation of the numbers from 0 to n - 1, by sorting n random numbers.

    >>> gt.randperm(3).sort().values
    tensor([0, 1, 2], dtype=int64)
    """
    wanted = parse_dtype(gt.int64 if dtype is None else dtype)
    if wanted.is_floating_point and n - 1 > 2 / gt.finfo(wanted).eps:
        raise ValueError(f"randperm: n is {n}, more integers than {wanted.name} represents exactly")
    check_drawn("randperm", 0, n, wanted)
    order = gt.argsort(uniform((n,), gt.float64, generator))
    return order if dtype is None else order._cast(dtype)


@function
@creation
def normal(
    mean: Tensor | float,
    std: Tensor | float = 1.0,
    size: Size | None = None,
    *,
    generator: Source = None,
    dtype: DType | None = None,
) -> Tensor:
    """Draw numbers from normal distributions, each with its own mean and standard deviation.

    Where both are numbers, `size` is the shape of the result.

    >>> gt.normal(0.0, gt.tensor([1.0, 2.0])).shape
    (2,)
    """
    if not isinstance(std, Tensor) and std < 0:
        raise ValueError(f"normal: std is {std}, expected 0 or more")
    tensors = [of for of in (mean, std) if isinstance(of, Tensor)]
    if not tensors:
        if size is None:
            raise TypeError("normal: size is missing; it is needed where mean and std are numbers")
        return gaussian(ints(size), dtype, generator) * std + mean
    with beside(tensors[0]):
        shape = _gt.broadcast_shapes(*(of.shape for of in tensors))
        drawn = gaussian(shape, float_dtype(*tensors), generator)
    return flat(lambda mean, std: drawn * std + mean, mean, std)


@operation
def bernoulli(
    input: Tensor, p: Tensor | float | None = None, *, generator: Source = None
) -> Tensor:
    """Draw 1 with the probability in the input, or with probability p if given, else 0.

    >>> gt.bernoulli(gt.tensor([0.0, 1.0]))
    tensor([0., 1.], dtype=float32)
    """
    if p is None:
        return flat(lambda chance: decided(chance, chance, generator), input)
    return flat(lambda like: decided(like, p, generator), input)


def decided(like: Tensor, p: Tensor | float, generator: Source) -> Tensor:
    """Draw 1 with probability p, else 0, in the shape and dtype of a tensor."""
    if not isinstance(p, Tensor) and not 0 <= p <= 1:
        raise ValueError(f"bernoulli: p is {p}, expected 0 to 1")
    double = isinstance(p, Tensor) and p.dtype == gt.float64
    with beside(like):
        drawn = uniform(like.shape, gt.float64 if double else gt.float32, generator)
    return (drawn < p)._cast(like.dtype)


@operation
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Source = None
) -> Tensor:
    """Draw indices along the last axis, with probabilities proportional to the weights there.

    The index with the largest ratio of weight to an exponential random number is distributed by the
    weights (https://en.wikipedia.org/wiki/Gumbel_distribution).

    Args:
        input: weights that are not negative, one row or several; in each, some must be positive.
        num_samples: the number of indices drawn from each row.
        replacement: whether an index may be drawn more than once.
        generator: the source of random numbers.

    >>> gt.multinomial(gt.tensor([0.0, 1.0]), 3, replacement=True)
    tensor([1, 1, 1], dtype=int64)
    """
    if input.ndim not in (1, 2) or not input.dtype.is_floating_point:
        raise ValueError(
            f"multinomial: weights are {input.dtype.name} of shape {input.shape}, expected floats "
            "in one axis or two"
        )
    if num_samples < 1 or not (replacement or num_samples <= input.shape[-1]):
        most = "" if replacement else f" to {input.shape[-1]}, or replacement=True"
        raise ValueError(f"multinomial: num_samples is {num_samples}, expected 1{most}")
    weights = input.detach()
    if replacement:
        weights = weights.unsqueeze(-2).expand(*input.shape[:-1], num_samples, input.shape[-1])
    with beside(input):
        ratio = weights / exponential(weights.shape, gt.float64, generator)
    if replacement:
        return ratio.argmax(-1)
    return ratio.argmax(-1, True) if num_samples == 1 else ratio.topk(num_samples).indices


def exponential(size: Sequence[int], dtype: DType, generator: Source) -> Tensor:
    """Draw numbers from the exponential distribution with mean 1, without 0."""
    least = gt.finfo(dtype).eps / 2
    return gt.clamp(-primitives.log1p(-uniform(size, dtype, generator)), min=least)


@function
def poisson(input: Tensor, generator: Source = None) -> Tensor:
    """Draw numbers from Poisson distributions whose means are the input.

    A negative mean is invalid and yields NaN.

    >>> gt.poisson(gt.zeros(2))
    tensor([0., 0.], dtype=float32)
    """
    with beside(input):
        return primitives.draw_poisson(*_drawn(generator), input.detach(), ())


@function
def binomial(count: Tensor, prob: Tensor, generator: Source = None) -> Tensor:
    """Draw the number of successes in `count` trials, each with probability `prob`.

    >>> gt.binomial(gt.tensor([3.0, 5.0]), gt.tensor([0.0, 1.0]))
    tensor([0., 5.], dtype=float32)
    """
    with beside(count):
        count, prob = gt.broadcast_tensors(count.detach(), prob.detach())
        return primitives.draw_binomial(*_drawn(generator), count, prob, ())
