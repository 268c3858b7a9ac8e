"""A module's parameters, buffers and child modules by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from gt._gt import Tensor

if TYPE_CHECKING:
    from .module import Module
    from .parameter import Parameter

#: Where a tensor is stored: the container and the key in it.
Place = tuple[MutableMapping[Any, Any] | list[Any], Any]

#: The prefix in `_parameters` of parameters that the model added without a name.
_LISTED = "_parameters."


class ParameterTable(dict[str, Any]):
    """A module's own parameters by name; models may also append parameters without names."""

    def listed(self, given: Iterable[Tensor], keep: dict[str, Tensor | None]) -> ParameterTable:
        """Return this table, filled with the parameters `keep` and, without names, `given`."""
        self.update(keep)
        self.extend(given)
        return self

    def append(self, parameter: Tensor) -> None:
        """Add a parameter without a name."""
        count = sum(name.startswith(_LISTED) for name in self)
        self[f"{_LISTED}{count}"] = parameter

    def extend(self, given: Iterable[Tensor]) -> None:
        """Add parameters without names."""
        for parameter in given:
            self.append(parameter)

    def __iadd__(self, given: Iterable[Tensor]) -> ParameterTable:
        self.extend(given)
        return self


class Parameters(list["Parameter"]):
    """A list of parameters that is also an iterator: `next()` returns them one by one."""

    _rest: Iterator[Parameter] | None = None

    def __next__(self) -> Parameter:
        if self._rest is None:
            self._rest = super().__iter__()
        return next(self._rest)

    def __iter__(self) -> Iterator[Parameter]:
        return super().__iter__() if self._rest is None else self._rest


class Tree:
    """The part of a module that traverses its tensors and descendants, by dotted names."""

    _parameters: ParameterTable
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]

    # Without descendants.

    def _own_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the names and tensors of the module's own parameters, those without names last."""
        for name, holder, key in self._parameter_places():
            yield name, holder[key]

    def _parameter_places(self) -> Iterator[tuple[str, Any, Any]]:
        """Yield the name, container and key of each of the module's own parameters."""
        listed = []
        for name, parameter in self._parameters.items():
            if name.startswith(_LISTED):
                listed.append(name)
            elif parameter is not None:
                yield name, self._parameters, name
        for name in listed:
            yield name, self._parameters, name

    def _all_children(self) -> Iterator[tuple[str, Any]]:
        """Yield the names and child modules; None for a name without a module."""
        yield from self._modules.items()

    def children(self) -> Iterator[Module]:
        """Yield the child modules, each once."""
        for _, child in self.named_children():
            yield child

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield the names and child modules, each module once."""
        seen: set[int] = set()
        for name, child in self._all_children():
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                yield name, child

    # With descendants.

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Yield this module and all its descendants."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yield the names and modules of this module and all its descendants.

        Args:
            memo: modules to skip; those that are yielded are added.
            prefix: the name of this module, which the other names begin with.
            remove_duplicate: whether a module with several names is yielded only once.
        """
        memo = set() if memo is None else memo
        if remove_duplicate and self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self  # type: ignore[misc]
        for name, child in self._all_children():
            if child is not None:
                below = f"{prefix}.{name}" if prefix else name
                yield from child.named_modules(memo, below, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Parameters:
        """Return a list of the parameters, each once."""
        return Parameters(parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield the names, such as `fc1.weight`, and tensors of the parameters.

        Args:
            prefix: the name of this module, which all names begin with.
            recurse: whether to include those of descendants.
            remove_duplicate: whether a parameter with several names is yielded only once.
        """
        given = self._named(Tree._own_parameters, prefix, recurse, remove_duplicate)
        # Parameters in a model's own list that also have a name are yielded under their name only.
        found: list[tuple[str, Any]] = []
        listed: list[tuple[str, Any]] = []
        for name, parameter in given:
            (listed if _LISTED in name else found).append((name, parameter))
        named = {id(parameter) for _, parameter in found}
        yield from found
        for name, parameter in listed:
            if id(parameter) not in named:
                yield name, parameter

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers: tensors of the module that are not trained."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield the names and tensors of the buffers."""

        def own(module: Any) -> Iterator[tuple[str, Tensor]]:
            return ((name, b) for name, b in module._buffers.items() if b is not None)

        return self._named(own, prefix, recurse, remove_duplicate)

    def _named(
        self, own: Callable[..., Any], prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield the names and tensors that `own` finds in this module and its descendants."""
        seen: set[int] = set()
        modules: Iterable[tuple[str, Any]] = [(prefix, self)]
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in modules:
            for name, tensor in own(module):
                if remove_duplicate and id(tensor) in seen:
                    continue
                seen.add(id(tensor))
                yield f"{path}.{name}" if path else name, tensor

    # By name.

    def get_submodule(self, target: str) -> Module:
        """Return the module of a name such as `layers.0.attention`; this module for ""."""
        module: Any = self
        walked: list[str] = []
        rest = target
        while rest:
            children = {name: child for name, child in module._all_children() if child is not None}
            name = next((n for n in children if rest == n or rest.startswith(f"{n}.")), None)
            if name is None:
                place = f"'{'.'.join(walked)}'" if walked else type(self).__name__
                raise AttributeError(
                    f"get_submodule: '{target}': {place} has no module '{rest.split('.')[0]}', "
                    f"its modules are: {', '.join(children) or 'none'}"
                )
            module = children[name]
            walked.append(name)
            rest = rest[len(name) + 1 :]
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Replace the module of a name, or add one.

        Args:
            target: the name, such as `layers.0.attention`.
            module: the new one.
            strict: whether a module of that name must exist already.
        """
        if not target:
            raise ValueError("set_submodule: target is '', expected the name of a module")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and name not in parent._modules:
            raise AttributeError(f"set_submodule: there is no module '{target}' to replace")
        parent._modules[name] = module

    def get_parameter(self, target: str) -> Tensor:
        """Return the parameter of a name such as `fc1.weight`."""
        holder, key = self._place_of(target, "parameter")
        return holder[key]

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer of a name such as `norm.running_mean`."""
        holder, key = self._place_of(target, "buffer")
        return holder[key]

    def _tensor_places(self, kind: str = "") -> Iterator[tuple[str, Any, Any]]:
        """Yield the name, container and key of every parameter and buffer.

        A tensor with several names is yielded under each of them.
        """
        for path, module in self.named_modules(remove_duplicate=False):
            before = f"{path}." if path else ""
            if kind != "buffer":
                for name, holder, key in module._parameter_places():
                    yield before + name, holder, key
            if kind != "parameter":
                for name, buffer in module._buffers.items():
                    if buffer is not None:
                        yield before + name, module._buffers, name

    def _place_of(self, target: str, kind: str = "") -> Place:
        """Return the container of a parameter or buffer, and its key there.

        Raises:
            AttributeError: the module has no tensor of that name and kind.
        """
        for name, holder, key in self._tensor_places(kind):
            if name == target:
                return holder, key
        kind = kind or "parameter or buffer"
        raise AttributeError(f"{type(self).__name__} has no {kind} '{target}'")
