"""Activations as modules."""

from gt._gt import Tensor
from gt.nn import functional
from gt.nn.module import Module


class Identity(Module):
    """The input itself."""

    def forward(self, x: Tensor) -> Tensor:
        """Give back the input."""
        return x


class ReLU(Module):
    """max(x, 0); `inplace` is taken as in PyTorch, and changes nothing."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def forward(self, x: Tensor) -> Tensor:
        """Apply it."""
        return x.relu()


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply it."""
        return x.sigmoid()


class Tanh(Module):
    """Hyperbolic tangent."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply it."""
        return x.tanh()


class GELU(Module):
    """x times the normal distribution function of x."""

    def __init__(self, approximate: str = "none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        """Apply it."""
        return x.gelu(self.approximate)


class SiLU(Module):
    """x times sigmoid(x); `inplace` is taken as in PyTorch, and changes nothing."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def forward(self, x: Tensor) -> Tensor:
        """Apply it."""
        return x.silu()


class Softplus(Module):
    """log(1 + exp(beta x)) / beta."""

    def __init__(self, beta: float = 1.0):
        super().__init__()
        self.beta = beta

    def forward(self, x: Tensor) -> Tensor:
        """Apply it."""
        return functional.softplus(x, self.beta)


class Softmax(Module):
    """exp(x) over its sum along an axis."""

    def __init__(self, dim: int = -1):
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        """Apply it."""
        return x.softmax(self.dim)


class LogSoftmax(Module):
    """The logarithm of softmax along an axis."""

    def __init__(self, dim: int = -1):
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        """Apply it."""
        return x.log_softmax(self.dim)
