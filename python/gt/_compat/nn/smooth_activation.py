"""Smooth activations."""

from __future__ import annotations

from gt.nn import functional as F

from .activation import _MaybeInPlace
from .forwarding import Forwarding, options


class Sigmoid(Forwarding, function=F.sigmoid):
    """1 / (1 + exp(-x))."""


class Tanh(Forwarding, function=F.tanh):
    """Hyperbolic tangent."""


class SiLU(_MaybeInPlace, function=F.silu):
    """x * sigmoid(x) (Elfwing et al., 2017)."""


class Mish(_MaybeInPlace, function=F.mish):
    """x * tanh(softplus(x)) (Misra, 2019)."""


class SELU(_MaybeInPlace, function=F.selu):
    """A scaled `ELU` that keeps mean 0 and variance 1 (Klambauer et al., 2017)."""


@options
class _Exponential(Forwarding):
    alpha: float = 1.0
    inplace: bool = False


class ELU(_Exponential, function=F.elu):
    """x where it is positive, alpha * (exp(x) - 1) elsewhere (Clevert et al., 2015)."""


class CELU(_Exponential, function=F.celu):
    """x where it is positive, alpha * (exp(x / alpha) - 1) elsewhere (Barron, 2017)."""


@options
class GLU(Forwarding, function=F.glu):
    """The first half of an axis times the sigmoid of the second (Dauphin et al., 2016)."""

    dim: int = -1


@options
class GELU(Forwarding, function=F.gelu):
    """x times the normal distribution function of x; `approximate` may be "tanh"."""

    approximate: str = "none"

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"approximate={self.approximate!r}"


class LogSigmoid(Forwarding, function=F.logsigmoid):
    """log(sigmoid(x))."""


@options
class Softplus(Forwarding, function=F.softplus):
    """log(1 + exp(beta x)) / beta; x itself where beta x is above the threshold."""

    beta: float = 1.0
    threshold: float = 20.0


class Softsign(Forwarding, function=F.softsign):
    """x / (1 + |x|)."""


class Tanhshrink(Forwarding, function=F.tanhshrink):
    """x - tanh(x)."""
