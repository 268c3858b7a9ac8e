"""Tensor parallelism by PyTorch's plans, which shard a module's parameters over workers.

GT derives the placement of activations and gradients itself. A plan affects where values are
computed and what is communicated, but never the values.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Sequence
from typing import Any

from torch import nn

import gt
from gt._gt import torch_device

#: (style, type of module) -> parameter -> the axis to shard along; other parameters are replicated.
_CUTS: dict[tuple[str, type[nn.Module]], dict[str, int]] = {
    ("ColwiseParallel", nn.Linear): {"weight": 0, "bias": 0},
    ("RowwiseParallel", nn.Linear): {"weight": 1},
    ("ColwiseParallel", nn.Embedding): {"weight": 1},
    ("RowwiseParallel", nn.Embedding): {"weight": 0},
}
#: Styles for the placement of activations, which GT derives itself.
_OF_ACTIVATIONS = (
    "SequenceParallel",
    "PrepareModuleInput",
    "PrepareModuleOutput",
    "PrepareModuleInputOutput",
)


def parallelize_module(
    module: nn.Module,
    device_mesh: int | Sequence[int] | None = None,
    parallelize_plan: Any = None,
) -> nn.Module:
    """Shard a module's parameters over workers by a plan of `torch.distributed.tensor.parallel`.

    Args:
        module: A module on the device "cluster".
        device_mesh: The workers: a number of workers, counted from worker 0, or a list of worker
            numbers; all workers if None.
        parallelize_plan: A style for the module itself, or a dict from names of submodules to
            styles; in names, `*` matches any text between dots. `ColwiseParallel` and
            `RowwiseParallel` shard `nn.Linear` and `nn.Embedding`; styles for activations have no
            effect, as GT derives their placement.

    Returns:
        The module.

    Raises:
        NotImplementedError: A style is not supported, or not for this type of module.
        TypeError: `device_mesh` has another type.
        ValueError: A name matches no module, or parameters are on another device.

    >>> from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel
    >>> layers = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Linear(32, 8)).to("cluster")
    >>> plan = {"0": ColwiseParallel(), "1": RowwiseParallel()}
    >>> _ = gt.torch.parallelize_module(layers, parallelize_plan=plan)
    """
    workers = _workers(device_mesh)
    if parallelize_plan is None:
        raise ValueError("parallelize_module: the argument parallelize_plan is missing")
    if not isinstance(parallelize_plan, dict):
        _place(module, parallelize_plan, workers)
        return module
    for name, style in parallelize_plan.items():
        found = list(_named(module, name))
        if not found:
            raise ValueError(
                f"parallelize_module: no module of {type(module).__name__} is named {name!r}\n"
                f"  hint: there are {', '.join(dict(module.named_children())) or 'none'}"
            )
        for submodule in found:
            _place(submodule, style, workers)
    return module


def _workers(mesh: Any) -> list[int] | None:
    if mesh is None:
        return None
    workers = list(range(mesh)) if type(mesh) is int else mesh
    if not isinstance(workers, Sequence) or not all(type(worker) is int for worker in workers):
        raise TypeError(
            f"parallelize_module: device_mesh is {mesh!r}, expected the number of workers or a "
            "list of them\n  hint: one process uses all workers, so there is no mesh of processes"
        )
    if not workers or min(workers) < 0:
        raise ValueError(
            f"parallelize_module: device_mesh is {mesh!r}, expected one or more workers, from 0 on"
        )
    return list(workers)


def _named(module: nn.Module, pattern: str) -> Iterator[nn.Module]:
    """Yield the modules whose names match a pattern, component by component."""
    wanted = pattern.split(".") if pattern else []
    for name, submodule in module.named_modules():
        parts = name.split(".") if name else []
        fits = zip(parts, wanted, strict=False)
        if len(parts) == len(wanted) and all(fnmatch.fnmatchcase(*pair) for pair in fits):
            yield submodule


def _place(module: nn.Module, style: Any, workers: list[int] | None) -> None:
    """Place a module's parameters according to a style."""
    kind = type(style).__name__
    if kind in _OF_ACTIVATIONS:
        return
    known = (cuts for (name, of), cuts in _CUTS.items() if name == kind and type(module) is of)
    cuts = next(known, None)
    if cuts is None:
        raise NotImplementedError(
            f"parallelize_module: {kind} of {type(module).__name__} on the device cluster\n"
            "  hint: ColwiseParallel and RowwiseParallel take nn.Linear and nn.Embedding"
        )
    for name, parameter in module.named_parameters():
        if parameter.device.type != "cluster":
            raise ValueError(
                f"parallelize_module: {name} of {type(module).__name__} is on {parameter.device}\n"
                "  hint: call module.to('cluster') first"
            )
        placed = gt.signal.tensor(torch_device.read(parameter), _signal(cuts.get(name), workers))
        torch_device.write(parameter, placed, "parallelize_module")


def _signal(axis: int | None, workers: list[int] | None) -> str:
    """Register a signal that shards along an axis, or replicates; return its name."""
    where = "all" if workers is None else ",".join(map(str, workers))
    name = f"torch.parallel: {'copies' if axis is None else f'axis {axis}'} on {where}"
    shard = gt.ShardConfig(axis=axis or 0, workers=workers, replicated=axis is None)
    gt.register_config(name, gt.SignalConfig(shard))
    return name
