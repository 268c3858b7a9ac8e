"""What a session keeps of PyTorch programs: `gt.torch.keep` and `gt.torch.kept`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch

import gt
from gt.torch.bridge import _plain_from_torch, _plain_to_torch

#: The key of the dict that stands for a PyTorch tensor.
_TENSOR = "__torch_tensor__"

_MISSING: Any = object()


def keep(name: str, value: Any) -> None:
    """Keep PyTorch tensors, and the containers around them, in this thread's session under a name.

    As `gt.keep`: tensors on the device "cluster" are not copied; others are copied to it.

        gt.attach("run-12", or_create=True)
        gt.torch.keep("state", {"model": model.state_dict(), "optimizer": optimizer.state_dict()})

    Args:
        name: the name, up to 200 characters.
        value: tensors of PyTorch or GT, numbers, strings, and dicts, lists and tuples of them.

    Raises:
        ConnectionError: the session is closed.
        TypeError: the value contains something that cannot be kept; the message says where.
        ValueError: the name is not valid.
    """
    known: dict[int, dict[str, Any]] = {}

    def describe(tensor: Any) -> Any:
        if not isinstance(tensor, torch.Tensor):
            return tensor
        if id(tensor) not in known:
            known[id(tensor)] = {
                _TENSOR: _plain_from_torch(tensor.detach()),
                "device": tensor.device.type,
                "requires_grad": tensor.requires_grad,
                "parameter": isinstance(tensor, torch.nn.Parameter),
            }
        return dict(known[id(tensor)])

    gt.keep(name, _mapped(value, describe))


def kept(name: str, default: Any = _MISSING) -> Any:
    """Return what `gt.torch.keep` keeps in this thread's session under a name.

    Args:
        name: the name; `gt.kept()` lists all.
        default: returned if nothing is kept under the name.

    Returns:
        The structure that was kept, with new tensors of the same values: on the device "cluster",
        without a copy, or in this process, as they were.

    Raises:
        ConnectionError: the session is closed.
        KeyError: nothing is kept under the name, and no default is given.
    """
    found = gt.kept(name, default) if default is not _MISSING else gt.kept(name)
    if found is default:
        return default
    made: dict[tuple[Any, ...], torch.Tensor] = {}

    def rebuild(value: Any) -> Any:
        if not (isinstance(value, dict) and _TENSOR in value):
            return value
        tensor, device = value[_TENSOR], value["device"]
        flags = (value["requires_grad"], value["parameter"])
        key = (id(tensor), device, *flags)
        if key not in made:
            requires_grad, is_parameter = flags
            plain = _plain_to_torch(tensor, device)
            made[key] = (
                torch.nn.Parameter(plain, requires_grad)
                if is_parameter
                else plain.requires_grad_(requires_grad)
            )
        return made[key]

    return _mapped(found, rebuild)


def _mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    """Return a structure in which a function replaces values; what it replaces is not searched."""
    replaced = function(value)
    if replaced is not value:
        return replaced
    if type(value) in (dict, OrderedDict):
        made = type(value)((key, _mapped(item, function)) for key, item in value.items())
        metadata = getattr(value, "_metadata", None)
        if metadata is not None:
            made._metadata = metadata
        return made
    if type(value) in (list, tuple):
        return type(value)(_mapped(item, function) for item in value)
    return value
