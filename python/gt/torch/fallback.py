"""The handling of operators for which the device has no kernel."""

from __future__ import annotations

import os
import sys
from typing import Any

import torch

_told: set[str] = set()


def run(operator: torch._ops.OpOverload, *args: Any, **kwargs: Any) -> Any:
    """Reject an operator, or compute it on the host if `GT_TORCH_FALLBACK=cpu`.

    Raises:
        NotImplementedError: The device has no kernel for the operator.
    """
    name = str(operator._schema.name)
    if os.environ.get("GT_TORCH_FALLBACK") != "cpu":
        raise NotImplementedError(
            f"{name} ({operator._overloadname}) is not an operation of the device cluster\n"
            "  hint: GT_TORCH_FALLBACK=cpu computes it on the host, which waits for its operands"
        )
    if name not in _told:
        _told.add(name)
        print(f"gt.torch: {name} is computed on the host", file=sys.stderr)
    return _on_host(operator, args, kwargs)


def _on_host(operator: torch._ops.OpOverload, args: Any, kwargs: Any) -> Any:
    """Compute an operator on host copies of its operands; copy modified operands back."""
    moved: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def to_host(given: Any) -> Any:
        if isinstance(given, torch.Tensor) and given.device.type == "cluster":
            if id(given) not in moved:
                moved[id(given)] = (given, given.cpu())
            return moved[id(given)][1]
        if isinstance(given, torch.device) and given.type == "cluster":
            return torch.device("cpu")
        if isinstance(given, list | tuple):
            return type(given)(to_host(one) for one in given)
        return given

    result = operator(
        *(to_host(given) for given in args), **{name: to_host(of) for name, of in kwargs.items()}
    )
    written = {
        at
        for at, of in enumerate(operator._schema.arguments)
        if of.alias_info and of.alias_info.is_write
    }
    for at in written:
        of = operator._schema.arguments[at]
        given = args[at] if at < len(args) else kwargs.get(of.name)
        if id(given) in moved:
            given.copy_(moved[id(given)][1])
    back = {id(host): given for given, host in moved.values()}

    def to_cluster(made: Any) -> Any:
        if isinstance(made, torch.Tensor):
            return back[id(made)] if id(made) in back else made.to("cluster")
        if isinstance(made, list | tuple):
            return type(made)(to_cluster(one) for one in made)
        return made

    return to_cluster(result)
