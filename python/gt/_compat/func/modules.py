"""Modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import gt
from gt._arguments import brief
from gt._gt import Tensor
from gt.ops.annotations import T

if TYPE_CHECKING:
    from gt.nn.calling import HasForward
    from gt.nn.module import Module


def functional_call(
    module: HasForward[..., T],
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> T:
    """Call a module with other tensors in place of its parameters and buffers.

    Args:
        module: The module, which is not changed.
        parameter_and_buffer_dicts: Tensors by the names of `named_parameters` and `named_buffers`;
            others keep their tensors. Several dicts are merged.
        args: The arguments of the call: a tuple, or the only one.
        kwargs: The keyword arguments of the call.
        tie_weights: Whether a tensor that the module has under several names is replaced under
            all of them.
        strict: Whether all parameters and buffers must be given.

    Raises:
        KeyError: The module does not have one of the names.
        ValueError: Several dicts have the same name.
        RuntimeError: Names are missing, with `strict`.

    >>> layer = gt.nn.Linear(2, 1)
    >>> given = {"weight": gt.ones(1, 2), "bias": gt.zeros(1)}
    >>> gt.func.functional_call(layer, given, gt.tensor([1.0, 2.0])).detach()
    tensor([3.], dtype=float32)
    """
    given = _joined(parameter_and_buffer_dicts)
    target: Any = module
    if not isinstance(target, gt.nn.Module):
        raise TypeError(f"module is {brief(module)}, expected a gt.nn.Module")
    places = {name: (holder, key) for name, holder, key in target._tensor_places()}
    if unknown := [name for name in given if name not in places]:
        raise KeyError(f"functional_call: the module has no parameter or buffer '{unknown[0]}'")
    put = _tied(places, given) if tie_weights else given
    if strict and (missing := sorted(set(places) - set(put))):
        raise RuntimeError(f"functional_call: missing names with strict=True: {missing}")
    before = []
    try:
        for name, tensor in put.items():
            holder, key = places[name]
            before.append((holder, key, holder[key]))
            holder[key] = tensor
        args = () if args is None else args if isinstance(args, tuple) else (args,)
        return target(*args, **(kwargs or {}))
    finally:
        for holder, key, tensor in reversed(before):
            holder[key] = tensor


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters and the buffers of several modules of one class, each stacked.

    Mapped over by `vmap` of `functional_call`, they compute an ensemble at once.

    >>> parameters, buffers = gt.func.stack_module_state([gt.nn.Linear(3, 2) for _ in range(4)])
    >>> parameters["weight"].shape
    (4, 2, 3)
    """
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    if any(model.training != models[0].training for model in models):
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    parameters = [dict(model.named_parameters()) for model in models]
    buffers = [dict(model.named_buffers()) for model in models]
    stacked = {
        name: gt.stack([of[name].detach() for of in parameters]).requires_grad_(
            parameters[0][name].requires_grad
        )
        for name in parameters[0]
    }
    return stacked, {name: gt.stack([of[name] for of in buffers]) for name in buffers[0]}


def _joined(dicts: Any) -> dict[str, Tensor]:
    if isinstance(dicts, Mapping):
        return dict(dicts)
    if not isinstance(dicts, Sequence) or not all(isinstance(one, Mapping) for one in dicts):
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(dicts)}"
        )
    joined: dict[str, Tensor] = {}
    for one in dicts:
        if repeated := sorted(set(joined) & set(one)):
            raise ValueError(
                f"{repeated} appeared in multiple dictionaries; behavior of functional call is "
                "ambiguous"
            )
        joined.update(one)
    return joined


def _tied(places: dict[str, tuple[Any, Any]], given: dict[str, Tensor]) -> dict[str, Tensor]:
    """Add the tensors under all other names of the tensors that they replace."""
    of = {id(places[name][0][places[name][1]]): tensor for name, tensor in given.items()}
    tied = {
        name: of[id(holder[key])] for name, (holder, key) in places.items() if id(holder[key]) in of
    }
    return tied | given


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Remove the running statistics of all batch normalizations of a module, in place; return it.

    Without them nothing is changed in place, so that `vmap` can map over the model.

    >>> model = gt.nn.Sequential(gt.nn.BatchNorm1d(2))
    >>> gt.func.replace_all_batch_norm_modules_(model)[0].running_mean is None
    True
    """
    for module in root.modules():
        if isinstance(module, (gt.nn.BatchNorm1d, gt.nn.BatchNorm2d, gt.nn.BatchNorm3d)):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
