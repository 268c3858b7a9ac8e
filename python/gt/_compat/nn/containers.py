"""Containers of modules."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, overload

from gt._gt import Tensor

from .module import Module

if TYPE_CHECKING:
    from typing_extensions import Self
else:
    Self = Any  # for `typing.get_type_hints`


class _Listed(Module):
    """The common base of containers that behave like a list."""

    def _index(self, index: Any) -> int:
        """Return a nonnegative index for one that may count from the end."""
        index, count = operator.index(index), len(self)
        if not -count <= index < count:
            raise IndexError(f"index {index} is out of range: there are {count} modules")
        return index % count

    def _key(self, index: Any) -> str:
        return list(self._modules)[self._index(index)]

    def _renumber(self, modules: Iterable[Module]) -> None:
        self._modules.clear()
        for index, module in enumerate(modules):
            self.add_module(str(index), module)

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._of_slice(list(self._modules.items())[index])
        return self._modules[self._key(index)]

    def _of_slice(self, items: list[tuple[str, Module]]) -> Any:
        return type(self)([module for _, module in items])

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._key(index), module)

    def __delitem__(self, index: int | slice) -> None:
        kept = list(self._modules.values())
        del kept[index if isinstance(index, slice) else self._index(index)]
        self._renumber(kept)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, module: Module) -> Self:
        """Append a module."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Append modules."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Insert a module before the one at an index."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}, got {type(module)}")
        modules = list(self._modules.values())
        if not -len(modules) <= index <= len(modules):
            raise IndexError(f"index {index} is out of range: there are {len(modules)} modules")
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, key: int | slice = -1) -> Module:
        """Remove a module, or a slice of them, and return it."""
        module = self[key]
        del self[key]
        return module


class Sequential(_Listed):
    """Modules that are applied one after another; named 0, 1, 2, ... or by a dict's keys."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], dict):
            items = list(args[0].items())
        else:
            items = [(str(index), module) for index, module in enumerate(args)]
        for name, module in items:
            if not isinstance(module, Module):
                raise TypeError(f"Sequential takes modules, not {type(module).__name__}")
            self.add_module(name, module)

    def _of_slice(self, items: list[tuple[str, Module]]) -> Any:
        return type(self)(OrderedDict(items))

    def __delitem__(self, index: int | slice) -> None:
        keys = list(self._modules)
        for key in keys[index] if isinstance(index, slice) else [self._key(index)]:
            del self._modules[key]
        # The remaining modules are renamed 0, 1, 2, ...
        self._renumber(list(self._modules.values()))

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                f"Sequential: only another Sequential can be added, not {type(other).__name__}"
            )
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Self:
        if not isinstance(other, Sequential):
            raise ValueError(
                f"Sequential: only another Sequential can be added, not {type(other).__name__}"
            )
        return self.extend(other)

    def __mul__(self, other: int) -> Sequential:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        return Sequential(*(module for _ in range(other) for module in self))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Self:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        return self.extend(list(self) * (other - 1))

    def forward(self, input: Any) -> Tensor | Any:
        """Pass the input through all modules in order."""
        for module in self._modules.values():
            input = module(input)
        return input


class ModuleList(_Listed):
    """A list of modules."""

    def __init__(self, modules: Iterable[Module] | None = None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def extend(self, modules: Iterable[Module]) -> Self:
        """Append modules."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleList.extend should be called with an iterable, but got "
                + type(modules).__name__
            )
        return super().extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, other: Iterable[Module]) -> Self:
        return self.extend(other)

    def __repr__(self) -> str:
        """Return PyTorch's text, in which consecutive modules with equal texts share an entry."""
        if not len(self):
            return f"{self._get_name()}()"
        blocks: list[tuple[int, int, str]] = []
        for index, text in enumerate(map(repr, self)):
            if blocks and blocks[-1][2] == text:
                blocks[-1] = (blocks[-1][0], index, text)
            else:
                blocks.append((index, index, text))
        lines = []
        for first, last, text in blocks:
            body = text.replace("\n", "\n  ")
            count = last - first + 1
            lines.append(
                f"({first}): {body}" if count == 1 else f"({first}-{last}): {count} x {body}"
            )
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """A dict of modules."""

    def __init__(self, modules: Mapping[str, Module] | Iterable[Any] | None = None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        try:
            return self._modules[key]
        except KeyError:
            raise self._missing(key) from None

    def _missing(self, key: str) -> KeyError:
        kind = type(self).__name__
        return KeyError(
            f"{kind} has no module {key!r}, it has {', '.join(self._modules) or 'none'}"
        )

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Remove the module of a key and return it."""
        if key not in self._modules:
            raise self._missing(key)
        return self._modules.pop(key)

    def keys(self) -> Iterable[str]:
        """Return the keys."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Module]]:
        """Return the pairs of key and module."""
        return self._modules.items()

    def values(self) -> Iterable[Module]:
        """Return the modules."""
        return self._modules.values()

    def update(self, modules: Mapping[str, Module] | Iterable[Any]) -> None:
        """Set modules from a mapping, or from pairs of key and module."""
        for name, module in pairs_of("ModuleDict", modules):
            self[name] = module


def pairs_of(what: str, given: Any) -> Iterable[tuple[str, Any]]:
    """Return the pairs of a mapping, or of an iterable of pairs."""
    if not isinstance(given, Iterable):
        raise TypeError(
            f"{what}.update should be called with an iterable of key/value pairs, but got "
            + type(given).__name__
        )
    if isinstance(given, Mapping) or hasattr(given, "items"):
        return list(given.items())
    pairs = list(given)
    for index, pair in enumerate(pairs):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ValueError(
                f"{what} update sequence element #{index} is {pair!r}, expected a name and a value"
            )
    return pairs
