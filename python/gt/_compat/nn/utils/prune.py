"""Pruning: masks that set parts of parameters to zero."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gt
from gt._gt import Tensor
from gt._public import show_callers

from ..module import Module
from ._pruning import BasePruningMethod, PruningContainer, pruning_hooks
from ._pruning_methods import (
    CustomFromMask,
    Identity,
    L1Unstructured,
    LnStructured,
    RandomStructured,
    RandomUnstructured,
)
from .convert_parameters import parameters_to_vector

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


def identity(module: Any, name: str) -> Any:
    """Prune a parameter by a mask of ones, and return the module.

    Args:
        module: the module. It receives the parameter `name_orig` and the buffer `name_mask`; its
            tensor `name` is their product, which is recomputed before each forward.
        name: the name of the parameter.
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: int | float) -> Any:
    """Prune random elements of a parameter, and return the module.

    Args:
        module: as for `identity`.
        name: the name of the parameter.
        amount: the number of elements, or a fraction from 0.0 to 1.0.

    >>> layer = gt.nn.utils.prune.random_unstructured(gt.nn.Linear(2, 3), "weight", amount=0.5)
    >>> layer.weight_mask.sum().item()
    3.0
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Any, name: str, amount: int | float, importance_scores: Tensor | None = None
) -> Any:
    """Prune the elements of a parameter with the smallest magnitude, and return the module.

    Args:
        module: as for `identity`.
        name: the name of the parameter.
        amount: the number of elements, or a fraction from 0.0 to 1.0.
        importance_scores: values of the parameter's shape, whose magnitude is used instead.
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: int | float, dim: int) -> Any:
    """Prune random slices of a parameter along an axis, and return the module.

    Args:
        module: as for `identity`.
        name: the name of the parameter.
        amount: the number of slices, or a fraction from 0.0 to 1.0.
        dim: the axis of the slices.
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Any,
    name: str,
    amount: int | float,
    n: Any,
    dim: int,
    importance_scores: Tensor | None = None,
) -> Any:
    """Prune the slices of a parameter along an axis with the smallest norm, and return the module.

    Args:
        module: as for `identity`.
        name: the name of the parameter.
        amount: the number of slices, or a fraction from 0.0 to 1.0.
        n: the order of the norm: a number, "fro" or "nuc".
        dim: the axis of the slices.
        importance_scores: values of the parameter's shape, whose norms are used instead.
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters as if they were one vector.

    Args:
        parameters: pairs of a module and the name of its parameter.
        pruning_method: a class that prunes single elements, such as `L1Unstructured`.
        importance_scores: for each pair, scores that replace the parameter's values.
        kwargs: arguments of `pruning_method`, such as `amount`.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    importance_scores = {} if importance_scores is None else importance_scores
    if not isinstance(importance_scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    places = list(parameters)
    tensors = [getattr(module, name) for module, name in places]
    scores = parameters_to_vector(
        importance_scores.get(place, tensor) for place, tensor in zip(places, tensors, strict=True)
    )
    masks = parameters_to_vector(
        getattr(module, f"{name}_mask", gt.ones_like(tensor))
        for (module, name), tensor in zip(places, tensors, strict=True)
    )
    method._tensor_name = "all"
    mask = PruningContainer(method).compute_mask(scores, masks)
    parts = mask.split([tensor.numel() for tensor in tensors])
    for (module, name), tensor, part in zip(places, tensors, parts, strict=True):
        custom_from_mask(module, name, mask=part.reshape(tensor.shape))


def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """Prune a parameter by a mask, and return the module.

    Args:
        module: as for `identity`.
        name: the name of the parameter.
        mask: a tensor of the parameter's shape: 0 for elements to prune, otherwise 1.
    """
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Any, name: str) -> Any:
    """Make a pruned tensor a plain parameter with its pruned values, and return the module."""
    hooks = pruning_hooks(module, name)
    if not hooks:
        raise ValueError(
            f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
        )
    key, hook = hooks[0]
    hook.remove(module)
    del module._forward_pre_hooks[key]
    return module


def is_pruned(module: Module) -> bool:
    """Return whether a parameter of a module or of a descendant is pruned."""
    return any(pruning_hooks(submodule) for submodule in module.modules())


show_callers(globals())
