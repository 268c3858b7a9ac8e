"""Tensors for all: `gt.publish`, `gt.shared`, `gt.published` and `gt.unpublish`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gt import _gt
from gt.session.packing import checked_name, pack, unpack

__all__ = ["Publication", "publish", "published", "shared", "unpublish"]

#: The name in the hints of messages.
_EXAMPLE = "qwen3-8b"


@dataclass(frozen=True)
class Publication:
    """A version of something published.

    Attributes:
        name: the name, with that of the user: "ada/qwen3-8b".
        version: the number of the version, from 1 on.
        to: who may read it: "team", "all", or the names of users.
        description: as its owner gave it.
        at: when it was published.
        tensors: the number of tensors.
        bytes: the bytes of the tensors, each counted once.
        readers: the number of sessions that read it now.
        visible: whether it can be read: the workers have stored it.
        withdrawn: whether its owner has withdrawn it: it stays for a while for its readers.
    """

    name: str
    version: int
    to: str
    description: str
    at: datetime
    tensors: int
    bytes: int
    readers: int
    visible: bool
    withdrawn: bool


def publish(
    name: str, value: Any, to: str | Sequence[str] = "team", *, description: str = ""
) -> str:
    """Publish tensors, as they are now, for other programs on the same server.

    Others read them by `gt.shared`, without a copy. The publication belongs to the server, not to
    this session: it stays when this program ends, until `gt.unpublish`. Publishing again under the
    name adds a version.

        gt.publish("qwen3-8b", model, to="all", description="base model, bfloat16")

    The call returns once the server has planned it. The tensors can be read when the workers have
    stored them, and copies of them; `gt.shared` waits for that.

    Args:
        name: the name, up to 200 characters other than "/" and "@". It is unique among those of its
            user.
        value: a module, whose state is published; or tensors, numbers, strings, and containers of
            them, as for `gt.save`. Views are copied, and tensors that appear twice stay one.
        to: who may read it: "team", those with keys of the same team; "all"; or a list of users. On
            a server without users' keys, "team" is all.
        description: a text for `gt.published`.

    Returns:
        The name with user and version, for `gt.shared`: "ada/qwen3-8b@1".

    Raises:
        ConnectionError: the session's workers run in this process, which no other program uses.
        RuntimeError: the name is not valid, there is no tensor or one has failed, or the user's
            quota is exceeded.
        TypeError: the value contains something that cannot be published; the message says where.
        ValueError: `to` is not valid, or a container contains itself.
    """
    users = _users(to)
    if not isinstance(description, str):
        raise TypeError(f"publish: the description is {description!r}, expected a string")
    if isinstance(value, _gt.Tensor) or not hasattr(value, "state_dict"):
        state = value
    else:
        state = _state_of(value)
    structure, tensors = pack(state, "publish")
    name = checked_name("publish", name, _EXAMPLE)
    return _gt.publish_tensors(name, users, description, structure, tensors)


def shared(name: str, into: Any = None) -> Any:
    """Return what was published under a name, without a copy.

    The tensors are read-only: changing one in place is an error. Gradients flow through them.

        base = gt.shared("qwen3-8b")             # the newest version that the user may read
        base = gt.shared("ada/qwen3-8b@2")       # a version of one user
        gt.shared("qwen3-8b", into=model)        # a model whose parameters they become, frozen

    Args:
        name: the name, which may have the user before a "/" and the version after an "@". Without a
            user it is one's own publication, or that of the only user who has published one.
        into: a module whose parameters and buffers become the published ones. Its parameters do not
            require gradients then.

    Returns:
        The structure that was published, with new tensors; `into` if it is given.

    Raises:
        ConnectionError: the session's workers run in this process.
        RuntimeError: nothing is published under the name that the user may read, several users
            have published under it, or the names or shapes of `into` are others.
        TypeError: `into` is no module, or what was published is no state of one.
    """
    _, structure, tensors = _gt.shared_tensors(checked_name("shared", name, _EXAMPLE))
    value = unpack(structure, tensors, f"shared: {name!r}")
    if into is None:
        return value
    if not hasattr(into, "load_state_dict"):
        raise TypeError(f"shared: into is a {type(into).__name__}, expected a module")
    return load_shared(into, value, f"gt.shared({name!r})")


def load_shared(into: Any, value: Any, call: str) -> Any:
    """Make what was published the state of a module, of GT or PyTorch, and return the module.

    Raises:
        RuntimeError: the names or shapes of the module are others.
        TypeError: what was published is no state of a module; the message has the `call` that
            returns it.
    """
    if not isinstance(value, Mapping):
        raise TypeError(
            f"shared: what was published is a {type(value).__name__}, expected the state of a "
            f"module, as into is given\n  hint: value = {call}"
        )
    into.load_state_dict(value, assign=True)
    return into.requires_grad_(False)


def unpublish(name: str) -> int:
    """Withdraw one's publication: a version, or all versions of a name.

    It can no longer be found by `gt.shared`. Programs that read it keep it for 10 minutes; then it
    is freed, and what they use of it fails.

        gt.unpublish("qwen3-8b@1")

    Args:
        name: the name, with a version after an "@", or without for all.

    Returns:
        The number of versions that were withdrawn.

    Raises:
        ConnectionError: the session's workers run in this process.
        RuntimeError: nothing of one's own is published under the name.
    """
    return _gt.unpublish(checked_name("unpublish", name, _EXAMPLE))


def published() -> list[Publication]:
    """Return what is published on this thread's server and the user may read.

        for publication in gt.published():
            print(publication.name, publication.version, publication.bytes)

    Returns:
        The versions, sorted by name and version.

    Raises:
        ConnectionError: the session's workers run in this process.
    """

    def of(entry: dict[str, Any]) -> Publication:
        return Publication(**{**entry, "at": datetime.fromtimestamp(entry["at"])})

    return [of(entry) for entry in _gt.list_published()]


def _state_of(value: Any) -> Any:
    """Return the state of a module or an optimizer, in which tied parameters are one tensor."""
    state = value.state_dict()
    if "keep_vars" in inspect.signature(value.state_dict).parameters:
        first: dict[int, str] = {}
        for name, parameter in value.state_dict(keep_vars=True).items():
            state[name] = state[first.setdefault(id(parameter), name)]
    return state


def _users(to: Any) -> list[str] | None:
    """Return the users that may read a publication; None for all, an empty list for the team."""
    if to == "all":
        return None
    if to == "team":
        return []
    is_list = isinstance(to, Sequence) and not isinstance(to, str)
    if is_list and to and all(isinstance(user, str) and user for user in to):
        return list(to)
    raise ValueError(
        f"publish: to is {to!r}, expected 'team', 'all' or a list of users\n"
        "  hint: gt.publish(NAME, model, to=['ada', 'bob'])"
    )
