"""PyTorch tensors for all: `gt.torch.publish` and `gt.torch.shared`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import gt
from gt._gt import torch_device
from gt.session.publications import load_shared
from gt.torch.bridge import _plain_from_torch, _plain_to_torch
from gt.torch.keeping import _mapped


def publish(
    name: str, value: Any, to: str | Sequence[str] = "team", *, description: str = ""
) -> str:
    """Publish PyTorch tensors, as they are now, for other programs on the same server.

    As `gt.publish`: tensors on the device "cluster" are not copied, others are copied to it.
    `gt.shared` reads what is published as well.

        gt.torch.publish("qwen3-8b", model, to="all")

    Args:
        name: the name.
        value: a module, whose state is published; or tensors, numbers, strings, and containers of
            them.
        to: who may read it: "team", "all", or a list of users.
        description: a text for `gt.published`.

    Returns:
        The name with user and version.

    Raises:
        ConnectionError: the session's workers run in this process, which no other program uses.
        RuntimeError: the name is not valid, there is no tensor, or the user's quota is exceeded.
        TypeError: the value contains something that cannot be published.
        ValueError: `to` is not valid.
    """
    made: dict[int, gt.Tensor] = {}

    def plain(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in made:
            made[id(value)] = _plain_from_torch(value.detach().to("cluster"))
        return made[id(value)]

    # Tied parameters are one tensor.
    state = value.state_dict(keep_vars=True) if isinstance(value, torch.nn.Module) else value
    return gt.publish(name, _mapped(state, plain), to, description=description)


def shared(name: str, into: torch.nn.Module | None = None) -> Any:
    """Return what was published under a name as PyTorch tensors on the device "cluster".

    As `gt.shared`: without a copy. A change in place is an error; `tensor.clone()` may be changed.

        gt.torch.shared("qwen3-8b", into=model)

    Args:
        name: the name, which may have the user before a "/" and the version after an "@".
        into: a module, of any device, whose parameters and buffers become the published ones. Its
            parameters do not require gradients then.

    Returns:
        The structure that was published, with new tensors; `into` if it is given.

    Raises:
        ConnectionError: the session's workers run in this process.
        RuntimeError: nothing is published under the name that the user may read, several users
            have published under it, or the names or shapes of `into` are others.
        TypeError: `into` is no module, or what was published is no state of one.
    """
    made: dict[int, torch.Tensor] = {}

    def converted(value: Any) -> Any:
        if not isinstance(value, gt.Tensor):
            return value
        if id(value) not in made:
            tensor = made[id(value)] = _plain_to_torch(value, "cluster")
            torch_device.protect_storage(tensor.data_ptr())
        return made[id(value)]

    value = _mapped(gt.shared(name), converted)
    if into is None:
        return value
    if not isinstance(into, torch.nn.Module):
        raise TypeError(f"shared: into is a {type(into).__name__}, expected a torch.nn.Module")
    return load_shared(into, value, f"gt.torch.shared({name!r})")
