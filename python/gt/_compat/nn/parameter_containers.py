"""Lists and dicts of parameters."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from gt._gt import Tensor

from .containers import pairs_of
from .module import Module
from .parameter import Parameter


def _as_parameter(value: Any) -> Any:
    """Return a tensor as a parameter, and other values as they are."""
    is_plain = isinstance(value, Tensor) and not isinstance(value, Parameter)
    return Parameter(value) if is_plain else value


class ParameterList(Module):
    """A list of parameters; tensors become parameters, other values are kept as they are."""

    def __init__(self, values: Iterable[Any] | None = None):
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _place(self, index: int) -> str:
        index = operator.index(index)
        if not -self._size <= index < self._size:
            raise IndexError(f"index {index} is out of range: there are {self._size} values")
        return str(index % self._size)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(self[place] for place in range(*index.indices(self._size)))
        return getattr(self, self._place(index))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._place(index), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[index] for index in range(self._size)])

    def append(self, value: Any) -> ParameterList:
        """Append a value."""
        setattr(self, str(self._size), _as_parameter(value))
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Append values."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, but got "
                + type(values).__name__
            )
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def extra_repr(self) -> str:
        """Return one line per value, with its type and size."""
        return "\n".join(f"  ({index}): {_described(value)}" for index, value in enumerate(self))


class ParameterDict(Module):
    """A dict of parameters; tensors become parameters, other values are kept as they are."""

    def __init__(self, parameters: Any = None):
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _check(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                f"Index given to ParameterDict cannot be used as a key as it is not a string "
                f"(type is '{type(key).__name__}')"
            )
        return key

    def __getitem__(self, key: str) -> Any:
        if self._check(key) not in self._keys:
            raise KeyError(
                f"ParameterDict has no {key!r}, it has {', '.join(self._keys) or 'none'}"
            )
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        self._check(key)
        setattr(self, key, _as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def __or__(self, other: ParameterDict) -> ParameterDict:
        return ParameterDict({**dict(self.items()), **dict(other.items())})

    def __ior__(self, other: Any) -> ParameterDict:  # type: ignore[misc]
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """Return a new dict of the same values."""
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, after setting it to the default if the key is missing."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, or the default if the key is missing."""
        return self[key] if key in self._keys else default

    def clear(self) -> None:
        """Remove all values."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove the value of a key and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove the last value and return its key and the value."""
        key = next(reversed(self))
        return key, self.pop(key)

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a new dict with the same value under each key."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Iterable[str]:
        """Return the keys."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return the pairs of key and value."""
        return [(key, self[key]) for key in self._keys]

    def values(self) -> Iterable[Any]:
        """Return the values."""
        return [self[key] for key in self._keys]

    def update(self, parameters: Any) -> None:
        """Set values from a mapping, or from pairs of key and value."""
        for key, value in pairs_of("ParameterDict", parameters):
            self[key] = value

    def extra_repr(self) -> str:
        """Return one line per value, with its type and size."""
        return "\n".join(
            f"  ({key}): {_described(value, _type_of(value))}" for key, value in self.items()
        )


def _type_of(value: Any) -> str:
    return str(value.type()) if isinstance(value, Tensor) else ""


def _described(value: Any, dtype: str = "") -> str:
    """Return a value's type; for a tensor, also its size and the text `dtype` or its dtype."""
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(str(length) for length in value.shape)
    return f"{kind} containing: [{dtype or value.dtype} of size {size}]"
