"""The tensors that variables of the program refer to, for people who watch it."""

from __future__ import annotations

import os
import sys
import sysconfig
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import FrameType, FunctionType, ModuleType
from typing import Any

from gt import _gt
from gt._lines import is_own

#: The most objects that are searched, and for how many seconds: the program waits meanwhile.
_MOST_OBJECTS = 20_000
_LONGEST = 0.25
#: The clock is read once for this many objects.
_BETWEEN_LOOKS = 256
#: How many steps an object may be away from its variable, as in `trainer.model.layers[0].weight`.
_DEEPEST = 12

#: Types whose objects refer to no tensors.
_PLAIN = (str, bytes, int, float, complex, bool, type, type(None), ModuleType, FunctionType)
#: Types of dicts' keys that are shown as they are.
_KEYS = (str, int, float, bool, type(None))
_LIBRARIES = tuple(
    {os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "purelib", "platlib")}
)


def variables() -> Iterator[tuple[str, Any]]:
    """Yield each tensor that the program's variables refer to, with an expression for it.

    Variables are those of `__main__`, and the locals of functions that run, of any thread. What
    they refer to is searched, nearer objects first: attributes of objects, modules' parameters,
    optimizers' states, dicts, lists and tuples.

    Returns:
        Pairs of an expression, as `model.fc1.weight`, and a tensor, of GT or of PyTorch's device.
    """
    until = time.monotonic() + _LONGEST
    waiting = deque((name, value, 0) for name, value in _names())
    # Entries of dicts whose keys are named by variables, as parameters in an optimizer's state.
    keyed: deque[tuple[str, Any, Any, int]] = deque()
    seen: set[int] = set()
    names: dict[int, str] = {}
    while (waiting or keyed) and len(seen) < _MOST_OBJECTS:
        if not waiting:
            name, key, value, depth = keyed.popleft()
            waiting.append((f"{name}[{_key(key, names)}]", value, depth))
        name, value, depth = waiting.popleft()
        if id(value) in seen or isinstance(value, _PLAIN):
            continue
        seen.add(id(value))
        if len(seen) % _BETWEEN_LOOKS == 0 and time.monotonic() > until:
            return
        if _is_tensor(value):
            names[id(value)] = name
            yield name, value
            if value.requires_grad and value.is_leaf and value.grad is not None:
                waiting.append((f"{name}.grad", value.grad, depth + 1))
        elif isinstance(value, dict) and depth < _DEEPEST:
            for key, inner in list(value.items()):
                if isinstance(key, _KEYS):
                    waiting.append((f"{name}[{key!r}]", inner, depth + 1))
                else:
                    keyed.append((name, key, inner, depth + 1))
        elif depth < _DEEPEST:
            waiting.extend((part, inner, depth + 1) for part, inner in _parts(name, value))


def _names() -> Iterator[tuple[str, Any]]:
    """Yield the variables of the program: of `__main__`, then of functions, outer ones first."""
    main = sys.modules.get("__main__")
    # A notebook's results (`_`, `_12`) come last: they have better names, if they have any.
    found = sorted(vars(main).items(), key=lambda item: item[0].startswith("_")) if main else []
    yield from found
    for frame in list(sys._current_frames().values()):
        for outer in reversed(list(_outward(frame))):
            yield from list(outer.f_locals.items())


def _outward(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and those that called it, without those of libraries and of modules."""
    while frame is not None:
        file = frame.f_code.co_filename
        is_library = file.startswith(_LIBRARIES) or file.startswith("<frozen")
        is_module = frame.f_locals is frame.f_globals or frame.f_code.co_name == "<module>"
        if not (is_library or is_module or is_own(frame.f_globals.get("__name__"))):
            yield frame
        frame = frame.f_back


def _is_tensor(value: object) -> bool:
    if isinstance(value, _gt.Tensor):
        return True
    torch = sys.modules.get("torch")
    is_torch = torch is not None and isinstance(value, getattr(torch, "Tensor", ()))
    return is_torch and value.device.type == "cluster"  # type: ignore[attr-defined]


def _parts(name: str, value: object) -> Iterable[tuple[str, Any]]:
    """Return what an object other than a dict refers to, with an expression for each."""
    if isinstance(value, (list, tuple, deque)):
        return [(f"{name}[{place}]", inner) for place, inner in enumerate(list(value))]
    attributes = getattr(value, "__dict__", None)
    if not isinstance(attributes, dict):
        return []
    parts = []
    for attribute, inner in list(attributes.items()):
        if attribute in {"_parameters", "_buffers", "_modules"} and isinstance(inner, dict):
            parts += [(f"{name}.{part}", of) for part, of in list(inner.items())]
        else:
            parts.append((f"{name}.{attribute}", inner))
    return parts


def _key(key: object, names: Mapping[int, str]) -> str:
    """Return the text of a dict's key: the name of a tensor that has one, or else its type."""
    return names.get(id(key)) or f"<{type(key).__name__}>"
