"""Conversion of containers of tensors to JSON and a list of tensors, and back."""

from __future__ import annotations

import base64
import json
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

import gt
from gt import _gt
from gt._device import device as Device
from gt._gt import Tensor
from gt._size import Size
from gt.formats import objects
from gt.formats.pickled import NotAllowed

#: Container types, by their names in a file.
_SEQUENCES: dict[str, type] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "size": Size,
}


def describe(value: Any, call: str = "save") -> tuple[str, list[tuple[str, Tensor]]]:
    """Return a structure as JSON, and its tensors with names, for a function in messages.

    Raises:
        TypeError: the structure contains an unsupported value; the message says where.
        ValueError: a container contains itself, or is nested too deep.
    """
    writer = _Writer(call)
    written = writer.write(value, ())
    return json.dumps(written), writer.tensors


def rebuild(
    text: str, tensor: Callable[[str], Tensor], where: str, is_trusted: bool = False
) -> Any:
    """Return the structure that JSON describes, with tensors returned by a function of the name.

    Args:
        text: the JSON.
        tensor: returns the tensor of a name.
        where: the name of the file in messages.
        is_trusted: whether the file may name any class.

    Raises:
        ValueError: the text does not describe a structure, or has objects that are not allowed.
    """
    try:
        return _Reader(tensor, is_trusted).read(json.loads(text))
    except NotAllowed as error:
        raise ValueError(f"{where}: it contains {error}\n  hint: {error.hint}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{where}: its structure is broken: {error!r}") from error


#: The maximum nesting depth of containers, so that every saved file can be read again.
_DEEPEST = 100


class _Writer:
    def __init__(self, call: str) -> None:
        self._call = call
        self.tensors: list[tuple[str, Tensor]] = []
        self._names: dict[int, str] = {}
        #: The objects and tensors whose `id` is known, which therefore must stay alive.
        self._alive: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._taken: set[str] = set()
        self._around: list[Any] = []

    def write(self, value: Any, path: tuple[str, ...]) -> Any:
        """Return the description of a value at a path in the structure."""
        is_around = any(value is container for container in self._around)
        if id(value) in self._numbers and (not is_around or hasattr(value, "__dict__")):
            return {"is": "again", "object": self._numbers[id(value)]}
        if is_around:
            raise ValueError(f"{self._call}: the {type(value).__name__}{_at(path)} contains itself")
        if len(self._around) > _DEEPEST:
            raise ValueError(
                f"{self._call}: containers are nested more than {_DEEPEST} deep{_at(path)}"
            )
        self._around.append(value)
        try:
            return self._described(value, path)
        finally:
            self._around.pop()

    def _described(self, value: Any, path: tuple[str, ...]) -> Any:
        if value is None or isinstance(value, (bool, int, float, str)) and type(value) in _PLAIN:
            return value
        if isinstance(value, Tensor):
            return self._tensor(value, path)
        for name, kind in _SEQUENCES.items():
            if type(value) is kind:
                given: Iterable[Any] = value  # type: ignore[assignment]
                items = [self.write(item, (*path, str(at))) for at, item in enumerate(given)]
                return {"is": name, "items": items}
        if type(value) in (dict, OrderedDict):
            return self._dict(value, path)
        if type(value) in (bytes, bytearray):
            text = base64.b64encode(value).decode()
            return {"is": type(value).__name__, "base64": text}
        if type(value) is complex:
            return {"is": "complex", "parts": [value.real, value.imag]}
        if isinstance(value, _gt.dtype):
            return {"is": "dtype", "name": value.name}
        if isinstance(value, Device):
            return {"is": "device", "name": str(value)}
        if type(value).__module__ == "numpy":
            return self._numpy(value, path)
        return self._object(value, path)

    def _object(self, value: Any, path: tuple[str, ...]) -> dict[str, Any]:
        number = len(self._numbers)
        if not isinstance(value, gt.optim.Optimizer):
            self._numbers[id(value)] = number
            self._alive.append(value)

            def write(part: Any, key: str) -> Any:
                is_table = key in _TABLES and isinstance(value, gt.nn.Module)
                return self.write(part, path if is_table else (*path, key))

            written = objects.describe(value, write)
            if written is not None:
                return {**written, "number": number}
        raise TypeError(_cannot(self._call, value, path))

    def _dict(self, value: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
        items = [
            [self.write(key, (*path, "key")), self.write(item, (*path, str(key)))]
            for key, item in value.items()
        ]
        written = {"is": "dict" if type(value) is dict else "ordered_dict", "items": items}
        metadata = getattr(value, "_metadata", None)
        if metadata:
            written["metadata"] = self.write(OrderedDict(metadata), (*path, "_metadata"))
        return written

    def _numpy(self, value: Any, path: tuple[str, ...]) -> Any:
        import numpy as np

        if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
            return {**self._tensor(_gt.tensor(value), path), "is": "array"}
        if isinstance(value, (np.bool_, np.number)) and type(value.item()) in (*_PLAIN, complex):
            return self._described(value.item(), path)
        raise TypeError(_cannot(self._call, value, path))

    def _tensor(self, tensor: Tensor, path: tuple[str, ...]) -> dict[str, Any]:
        known = self._names.get(id(tensor))
        if known is None:
            known = self._name(".".join(path))
            self._names[id(tensor)] = known
            self._alive.append(tensor)
            # safetensors has no complex128: real and imaginary parts become one more axis.
            kept = tensor.detach()
            wide = kept.dtype == gt.complex128
            self.tensors.append((known, gt.view_as_real(kept) if wide else kept))
        written: dict[str, Any] = {"is": "tensor", "name": known}
        if tensor.dtype == gt.complex128:
            written["complex128"] = True
        if tensor.requires_grad:
            written["requires_grad"] = True
        # The type is compared first, as `gt.nn` takes a while to import.
        if type(tensor) is not Tensor and isinstance(tensor, gt.nn.Parameter):
            written["parameter"] = True
        return written

    def _name(self, wanted: str) -> str:
        """Return a unique name for a tensor that can be encoded in UTF-8."""
        wanted = wanted.encode("utf-8", "backslashreplace").decode()
        name, count = wanted or "tensor", 1
        while name in self._taken or name == "__metadata__":
            count += 1
            name = f"{wanted}#{count}"
        self._taken.add(name)
        return name


_PLAIN = (bool, int, float, str)

#: Attributes of modules that are no part of the names of their tensors, as in a state dict.
_TABLES = ("_modules", "_parameters", "_buffers")


def _cannot(call: str, value: Any, path: tuple[str, ...]) -> str:
    kind = type(value).__name__
    if isinstance(value, gt.optim.Optimizer):
        hint = f"{call} its state_dict()"
    elif isinstance(value, gt.nn.Module):
        hint = f"{call} its state_dict(), or define its class at the top of a module"
    elif type(value).__module__.partition(".")[0] == "torch" and call == "keep":
        hint = "gt.torch.keep(name, value) keeps PyTorch's tensors"
    elif callable(value):
        hint = "functions and classes are saved by name, so define it at the top of a module"
    else:
        hint = (
            f"{call} tensors, arrays, numbers, strings, containers of them, and objects of classes "
            "that are defined at the top of a module"
        )
    what = "kept" if call == "keep" else "saved"
    return f"{call}: {kind}{_at(path)} cannot be {what}\n  hint: {hint}"


def _at(path: tuple[str, ...]) -> str:
    """Return the part of a message that says where a value is."""
    shown = path if len(path) <= 10 else (*path[:10], "...")
    return f" at '{'.'.join(shown)}'" if path else ""


class _Reader:
    def __init__(self, tensor: Callable[[str], Tensor], is_trusted: bool):
        self._tensor, self._is_trusted = tensor, is_trusted
        self._tensors: dict[tuple[Any, ...], Any] = {}
        self._objects: dict[int, Any] = {}

    def read(self, written: Any) -> Any:
        """Return the value of a description."""
        if not isinstance(written, dict):
            if isinstance(written, list):
                raise ValueError("a list without a kind")
            return written
        kind = written["is"]
        if kind in ("tensor", "array"):
            return self._read_tensor(written)
        if kind in _SEQUENCES:
            return _SEQUENCES[kind](self.read(item) for item in written["items"])
        if kind in ("dict", "ordered_dict"):
            return self._read_dict(written, dict if kind == "dict" else OrderedDict)
        if kind in ("bytes", "bytearray"):
            values = base64.b64decode(written["base64"], validate=True)
            return values if kind == "bytes" else bytearray(values)
        if kind == "complex":
            return complex(*written["parts"])
        if kind == "dtype":
            return _gt.parse_dtype(written["name"])
        if kind == "device":
            return Device(written["name"])
        if kind == "again":
            return self._objects[written["object"]]
        return self._read_object(written)

    def _read_dict(self, written: dict[str, Any], kind: type) -> Any:
        made = kind((self.read(key), self.read(item)) for key, item in written["items"])
        if "metadata" in written:
            made._metadata = self.read(written["metadata"])
        return made

    def _read_object(self, written: dict[str, Any]) -> Any:
        number = written.get("number")

        def keep(made: Any) -> None:
            if number is not None:
                self._objects[number] = made

        made = objects.rebuild(written, self.read, self._is_trusted, keep)
        if made is NotImplemented:
            raise ValueError(f"a value of an unknown kind {written['is']!r}")
        keep(made)
        return made

    def _read_tensor(self, written: dict[str, Any]) -> Any:
        """Return the tensor of a description; the same object for the same description."""
        requires_grad, is_parameter = (
            bool(written.get(name)) for name in ("requires_grad", "parameter")
        )
        key = (written["name"], written["is"], requires_grad, is_parameter)
        if key not in self._tensors:
            value = self._tensor(written["name"])
            if written.get("complex128"):
                value = gt.view_as_complex(value)
            if written["is"] == "array":
                return value.numpy()
            if is_parameter:
                self._tensors[key] = gt.nn.Parameter(value, requires_grad)
            else:
                self._tensors[key] = value.detach().requires_grad_(requires_grad)
        return self._tensors[key]
