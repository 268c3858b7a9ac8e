"""PyTorch's other names for operations."""

from __future__ import annotations

import numbers
from typing import Any

from gt._gt import Tensor, faces
from gt.ops.registry import COMPOSITES, extend_tensor

#: Names in `gt` and their aliases there; methods have the same aliases.
_NAMES = {
    "abs": "absolute",
    "div": "true_divide",
    "ge": "greater_equal",
    "gt": "greater",
    "le": "less_equal",
    "lt": "less",
    "mul": "multiply",
    "ne": "not_equal",
    "neg": "negative",
    "trunc": "fix",
}
#: Names in `gt` and their names in `gt.special`.
_SPECIAL = {
    "digamma": "digamma psi",
    "erf": "erf",
    "erfc": "erfc",
    "erfinv": "erfinv",
    "exp2": "exp2",
    "expm1": "expm1",
    "i0": "i0",
    "igamma": "gammainc",
    "igammac": "gammaincc",
    "lgamma": "gammaln",
    "log1p": "log1p",
    "log_softmax": "log_softmax",
    "logit": "logit",
    "logsumexp": "logsumexp",
    "mvlgamma": "multigammaln",
    "polygamma": "polygamma",
    "round": "round",
    "sigmoid": "expit",
    "sinc": "sinc",
    "softmax": "softmax",
}


def declare() -> None:
    """Register the aliases of all operations that are registered so far."""
    for name, others in _NAMES.items():
        for other in others.split():
            _declare(f"gt.{other}", name)
            for end in ("", "_"):
                if hasattr(Tensor, name + end):
                    extend_tensor(**{other + end: getattr(Tensor, name + end)})
    for name, others in _SPECIAL.items():
        for other in others.split():
            _declare(f"gt.special.{other}", name)


def _declare(alias: str, name: str) -> None:
    known = COMPOSITES.get(f"gt.{name}") or faces["gt"].get(name)
    if known is not None:
        COMPOSITES.setdefault(alias, known)


def _reversed(tensor: Tensor) -> Tensor:
    """Return the tensor reversed along the first axis: `reversed(x)`."""
    return tensor.flip(0) if tensor.ndim else tensor


def _contains(self: Tensor, element: Any) -> bool:
    """Return whether any value of the tensor is `element`, a number or a tensor."""
    if not isinstance(element, (Tensor, numbers.Number)):
        kind = type(element).__name__
        raise RuntimeError(f"in: a tensor contains numbers and tensors, not objects of type {kind}")
    return bool((self == element).any())


def _round(self: Tensor, ndigits: int | None = None) -> Tensor:
    """Return the values rounded half to even, for `round(x, 2)`."""
    return self.round(decimals=ndigits or 0)


extend_tensor(
    __contains__=_contains,
    __reversed__=_reversed,
    __round__=_round,
    # Division in Python 2; PyTorch still has it.
    __rdiv__=Tensor.__rtruediv__,
)
