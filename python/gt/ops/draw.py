"""In-place random methods of tensors, one for each distribution."""

from __future__ import annotations

import math
from collections.abc import Callable

import gt
from gt._gt import Tensor, primitives
from gt.ops.annotations import DType
from gt.ops.create import beside
from gt.ops.random import (
    Source,
    check_drawn,
    decided,
    exponential,
    gaussian,
    integers,
    uniform,
)
from gt.ops.sizes import method


@method
def uniform_(self: Tensor, from_: float = 0, to: float = 1, *, generator: Source = None) -> Tensor:
    """Fill with numbers uniform in [from_, to).

    Args:
        from_: the lower limit; PyTorch's name `from` is accepted.
        to: the upper limit, which is not drawn.
        generator: the source of random numbers; that of `gt.manual_seed` by default.

    >>> gt.zeros(2).uniform_(5, 6).floor()
    tensor([5., 5.], dtype=float32)
    """
    _need("uniform_", from_ <= to, f"from is {from_}, expected no more than to, {to}")
    start = complex(from_, from_) if self.dtype.is_complex else from_

    def between(drawn: Tensor) -> Tensor:
        if self.dtype in (gt.float16, gt.bfloat16):
            # Keep only as many digits as the dtype has: more could be rounded up to the limit.
            digits = 1 / gt.finfo(self.dtype).eps * 2
            drawn = (drawn * digits).floor() / digits
        found = drawn * (to - from_) + start
        if self.dtype.is_complex or from_ == to:
            return found
        # The sum may be rounded up to the limit, too.
        found = found._cast(self.dtype)
        return gt.where(found >= to, from_, found)

    return _fill("uniform_", self, uniform, generator, between, with_complex=True)


@method
def normal_(self: Tensor, mean: float = 0, std: float = 1, *, generator: Source = None) -> Tensor:
    """Fill with numbers from a normal distribution.

    Args:
        mean: the mean.
        std: the standard deviation, 0 or more.
        generator: the source of random numbers; that of `gt.manual_seed` by default.

    >>> gt.zeros(2).normal_(3, 0)
    tensor([3., 3.], dtype=float32)
    """
    _need("normal_", std >= 0, f"std is {std}, expected 0 or more")
    return _fill("normal_", self, gaussian, generator, lambda z: z * std + mean, with_complex=True)


@method
def log_normal_(
    self: Tensor, mean: float = 1, std: float = 2, *, generator: Source = None
) -> Tensor:
    """Fill with numbers whose logarithms are normally distributed.

    >>> gt.zeros(2).log_normal_(0, 1e-9)
    tensor([1., 1.], dtype=float32)
    """
    _need("log_normal_", std > 0, f"std is {std}, expected more than 0")
    return _fill("log_normal_", self, gaussian, generator, lambda z: (z * std + mean).exp())


@method
def exponential_(self: Tensor, lambd: float = 1, *, generator: Source = None) -> Tensor:
    """Fill with numbers from an exponential distribution with mean 1 / lambd.

    >>> (gt.zeros(2).exponential_() > 0).all()
    tensor(True, dtype=bool)
    """
    _need("exponential_", lambd > 0, f"lambd is {lambd}, expected more than 0")
    return _fill("exponential_", self, exponential, generator, lambda drawn: drawn / lambd)


@method
def cauchy_(
    self: Tensor, median: float = 0, sigma: float = 1, *, generator: Source = None
) -> Tensor:
    """Fill from a Cauchy distribution: median + sigma * tan(pi (u - 1/2)) for uniform u.

    >>> gt.zeros(2).cauchy_(3, 1e-9).round()
    tensor([3., 3.], dtype=float32)
    """
    _need("cauchy_", sigma > 0, f"sigma is {sigma}, expected more than 0")
    return _fill(
        "cauchy_", self, uniform, generator, lambda u: gt.tan((u - 0.5) * math.pi) * sigma + median
    )


@method
def geometric_(self: Tensor, p: float, *, generator: Source = None) -> Tensor:
    """Fill with the number of trials until one succeeds, each with probability p.

    It is log(u) / log(1 - p), rounded up, for uniform u.

    >>> gt.zeros(2).geometric_(0.9999999)
    tensor([1., 1.], dtype=float32)
    """
    _need("geometric_", 0 < p < 1, f"p is {p}, expected between 0 and 1")
    with beside(self):
        drawn = uniform(self.shape, _wide(self), generator)
    trials = primitives.log1p(-drawn) / math.log1p(-p)
    return self._assign(gt.clamp(trials.ceil(), min=1)._cast(self.dtype), "geometric_")


@method
def bernoulli_(self: Tensor, p: Tensor | float = 0.5, *, generator: Source = None) -> Tensor:
    """Fill with 1 with probability p, else 0.

    >>> gt.zeros(2).bernoulli_(1.0)
    tensor([1., 1.], dtype=float32)
    """
    return self._assign(decided(self, p, generator), "bernoulli_")


@method
def random_(
    self: Tensor, from_: int = 0, to: int | None = None, *, generator: Source = None
) -> Tensor:
    """Fill with integers from [from_, to), all equally likely; `random_(to)` starts at 0.

    Without limits, with all integers from 0 on that the dtype represents without gaps.

    >>> gt.zeros(2).random_(3, 4)
    tensor([3., 3.], dtype=float32)
    """
    if to is None:
        from_, to = 0, from_ or _most(self)
    check_drawn("random_", from_, to, self.dtype)
    with beside(self):
        drawn = integers(from_, to, self.shape, gt.int64, generator)
    return self._assign(drawn._cast(self.dtype), "random_")


def _most(input: Tensor) -> int:
    """Return the exclusive end of the integers that the dtype represents without gaps."""
    if input.dtype == gt.bool:
        return 2
    if input.dtype.is_floating_point:
        return int(2 / gt.finfo(input.dtype).eps) + 1
    return min(gt.iinfo(input.dtype).max + 1, 2**63 - 1)


def _need(name: str, fits: bool, wrong: str) -> None:
    if not fits:
        raise ValueError(f"{name}: {wrong}")


def _fill(
    name: str,
    self: Tensor,
    draw: Callable[..., Tensor],
    generator: Source,
    of_drawn: Callable[[Tensor], Tensor],
    with_complex: bool = False,
) -> Tensor:
    """Store a function of drawn floats in a tensor of floats, or of complex numbers if allowed."""
    if not (self.dtype.is_floating_point or (with_complex and self.dtype.is_complex)):
        raise TypeError(f"{name}: dtype is {self.dtype.name}, expected floats")
    with beside(self):
        drawn = draw(self.shape, _wide(self), generator)
    return self._assign(of_drawn(drawn)._cast(self.dtype), name)


def _wide(input: Tensor) -> DType:
    """Return the dtype to draw in: the tensor's own if float64 or complex, else float32."""
    own = input.dtype.is_complex or input.dtype == gt.float64
    return input.dtype if own else gt.float32
