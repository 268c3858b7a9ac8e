"""The table of divergences, keyed by the classes of both distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gt._gt import Tensor
from gt._lines import warn

from ..distribution import Distribution

_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}
#: Cached results of `_find`, by pair of classes.
_FOUND: dict[tuple[type, type], Callable[[Any, Any], Tensor] | None] = {}


def register_kl(
    type_p: type[Any], type_q: type[Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that registers a function of p and q for two classes of distributions.

    `kl_divergence` calls the function registered for the nearest base classes. If the nearest for
    p and the nearest for q are different functions, it warns and calls the one for p; registering
    a function for the pair itself resolves the ambiguity.
    """
    for kind in (type_p, type_q):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise TypeError(f"Expected a Distribution subclass but got {kind}")

    def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
        _REGISTRY[type_p, type_q] = function
        _FOUND.clear()
        return function

    return decorator


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the divergence KL(p || q) = E_p[log(p(x) / q(x))], of shape batch_shape.

    Raises a NotImplementedError if no function is registered for the pair (`register_kl`).
    """
    pair = type(p), type(q)
    if pair not in _FOUND:
        _FOUND[pair] = _find(*pair)
    function = _FOUND[pair]
    if function is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} "
            f"and q type {type(q).__name__}"
        )
    return function(p, q)


def _find(type_p: type, type_q: type) -> Callable[[Any, Any], Tensor] | None:
    matches = [(p, q) for p, q in _REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not matches:
        return None
    place_p, place_q = type_p.__mro__.index, type_q.__mro__.index
    by_p = min(matches, key=lambda match: (place_p(match[0]), place_q(match[1])))
    by_q = min(matches, key=lambda match: (place_q(match[1]), place_p(match[0])))
    if _REGISTRY[by_p] is not _REGISTRY[by_q]:
        warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({by_p[0].__name__}, {by_q[1].__name__})",
            RuntimeWarning,
        )
    return _REGISTRY[by_p]
