"""What a session keeps under names: `gt.keep`, `gt.kept` and `gt.unkeep`."""

from __future__ import annotations

from typing import Any

from gt import _gt
from gt.session.packing import checked_name, pack, unpack

_MISSING: Any = object()


def keep(name: str, value: Any) -> None:
    """Keep tensors, and the containers around them, in this thread's session under a name.

    What a session keeps stays in it when it is detached, and when the program of a named session
    ends or dies: the program that attaches to it next finds it by `gt.kept`. A name holds the
    values as they are at the call; keeping again under the name replaces them, all at once.

        gt.attach("run-12", or_create=True)
        gt.keep("state", {"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                          "random": gt.random.get_rng_state(), "step": step})

    Args:
        name: the name, up to 200 characters.
        value: tensors, arrays, numbers, strings, and containers of them, as for `gt.save`.

    Raises:
        ConnectionError: the session is closed.
        TypeError: the value contains something that cannot be kept; the message says where.
        RuntimeError: what surrounds all kept tensors has more than 64 MB, or a tensor is one of
            another session.
        ValueError: the name is empty, too long or has control characters; or a container contains
            itself.
    """
    structure, tensors = pack(value, "keep")
    _gt.keep_tensors(checked_name("keep", name, "state"), structure, tensors)


def kept(name: str | None = None, default: Any = _MISSING) -> Any:
    """Return what this thread's session keeps under a name, or the names.

        state = gt.kept("state", None)
        if state is not None:
            model.load_state_dict(state["model"])

    Args:
        name: the name; None for a list of all names, sorted.
        default: returned if nothing is kept under the name.

    Returns:
        The structure that was kept, with new tensors of the same values.

    Raises:
        ConnectionError: the session is closed.
        KeyError: nothing is kept under the name, and no default is given.
    """
    if name is None:
        return [of for of, _, _ in _gt.list_kept()]
    found = _gt.kept_tensors(checked_name("kept", name, "state"))
    if found is None:
        if default is not _MISSING:
            return default
        names = ", ".join(repr(of) for of, _, _ in _gt.list_kept())
        raise KeyError(f"kept: nothing is kept under {name!r}, the names are: {names or 'none'}")
    structure, tensors = found
    return unpack(structure, tensors, f"kept: {name!r}")


def unkeep(name: str) -> bool:
    """Keep nothing under a name any more; its tensors are freed unless something else has them.

    Args:
        name: the name.

    Returns:
        Whether anything was kept under it.

    Raises:
        ConnectionError: the session is closed.
    """
    return _gt.unkeep(checked_name("unkeep", name, "state"))
