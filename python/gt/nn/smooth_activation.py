"""Smooth activations."""

from __future__ import annotations

from gt._gt import Tensor
from gt.nn import functional as F
from gt.nn.activation import _in_place, _MaybeInPlace
from gt.nn.module import Module


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return input.sigmoid()


class Tanh(Module):
    """Hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return input.tanh()


class SiLU(_MaybeInPlace):
    """x * sigmoid(x) (Elfwing et al., 2017)."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return F.silu(input, self.inplace)


class Mish(_MaybeInPlace):
    """x * tanh(softplus(x)) (Misra, 2019)."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return F.mish(input, self.inplace)


class SELU(_MaybeInPlace):
    """A scaled `ELU` that keeps mean 0 and variance 1 (Klambauer et al., 2017)."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return F.selu(input, self.inplace)


class _Exponential(Module):
    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"alpha={self.alpha}{_in_place(self.inplace)}"


class ELU(_Exponential):
    """x where it is positive, alpha * (exp(x) - 1) elsewhere (Clevert et al., 2015)."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Exponential):
    """x where it is positive, alpha * (exp(x / alpha) - 1) elsewhere (Barron, 2017)."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return F.celu(input, self.alpha, self.inplace)


class GLU(Module):
    """The first half of an axis times the sigmoid of the second (Dauphin et al., 2016)."""

    def __init__(self, dim: int = -1):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"dim={self.dim}"


class GELU(Module):
    """x times the normal distribution function of x; `approximate` may be "tanh"."""

    def __init__(self, approximate: str = "none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"approximate={self.approximate!r}"


class LogSigmoid(Module):
    """log(sigmoid(x))."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return F.logsigmoid(input)


class Softplus(Module):
    """log(1 + exp(beta x)) / beta; x itself where beta x is above the threshold."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"beta={self.beta}, threshold={self.threshold}"


class Softsign(Module):
    """x / (1 + |x|)."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x)."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return F.tanhshrink(input)
