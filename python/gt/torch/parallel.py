"""Tensor parallelism by PyTorch's plans: how a module's parameters are cut over the workers.

What follows from them, activations and gradients, GT places by itself, so that a plan changes
where numbers are computed and what is moved for it, never the numbers.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Sequence
from typing import Any

from torch import nn

import gt
from gt._gt import torch_device

#: Along which axis a style cuts the parameters of a kind of module; the others are copied.
_CUTS: dict[tuple[str, type[nn.Module]], dict[str, int]] = {
    ("ColwiseParallel", nn.Linear): {"weight": 0, "bias": 0},
    ("RowwiseParallel", nn.Linear): {"weight": 1},
    ("ColwiseParallel", nn.Embedding): {"weight": 1},
    ("RowwiseParallel", nn.Embedding): {"weight": 0},
}
#: Styles that say where activations lie, which nobody has to say here.
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
    """Cut a module's parameters over workers, by a plan of `torch.distributed.tensor.parallel`.

    Args:
        module: a module on the device "cluster".
        device_mesh: the workers: how many of the first, or their numbers; all where it is None.
        parallelize_plan: a style for the module itself, or styles by the names of modules in it,
            in which `*` stands for anything between dots. Of the styles, `ColwiseParallel` and
            `RowwiseParallel` cut `nn.Linear` and `nn.Embedding`; those of activations change
            nothing, as GT finds where they lie.

    Returns:
        The module.

    Raises:
        NotImplementedError: a style that the device has not, or has not for such a module.
        TypeError: `device_mesh` is none of these.
        ValueError: a name that no module has; parameters on another device.

    >>> from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel
    >>> layers = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Linear(32, 8)).to("cluster")
    >>> plan = {"0": ColwiseParallel(), "1": RowwiseParallel()}
    >>> _ = gt.torch.parallelize_module(layers, parallelize_plan=plan)
    """
    workers = _workers(device_mesh)
    if parallelize_plan is None:
        raise ValueError("parallelize_module: a parallelize_plan is expected, and none was given")
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
            f"parallelize_module: device_mesh is {mesh!r}, expected one worker or more, from 0 on"
        )
    return list(workers)


def _named(module: nn.Module, pattern: str) -> Iterator[nn.Module]:
    """Give the modules whose names fit a pattern, part by part."""
    wanted = pattern.split(".") if pattern else []
    for name, submodule in module.named_modules():
        parts = name.split(".") if name else []
        fits = zip(parts, wanted, strict=False)
        if len(parts) == len(wanted) and all(fnmatch.fnmatchcase(*pair) for pair in fits):
            yield submodule


def _place(module: nn.Module, style: Any, workers: list[int] | None) -> None:
    """Place a module's parameters as a style says."""
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
                "  hint: module.to('cluster') comes first"
            )
        placed = gt.signal.tensor(torch_device.read(parameter), _signal(cuts.get(name), workers))
        torch_device.write(parameter, placed, "parallelize_module")


def _signal(axis: int | None, workers: list[int] | None) -> str:
    """Give the name of a signal that cuts along an axis, or copies."""
    where = "all" if workers is None else ",".join(map(str, workers))
    name = f"torch.parallel: {'copies' if axis is None else f'axis {axis}'} on {where}"
    shard = gt.ShardConfig(axis=axis or 0, workers=workers, replicated=axis is None)
    gt.register_config(name, gt.SignalConfig(shard))
    return name
