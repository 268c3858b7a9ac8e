"""Saving and loading a module's state: its parameters and persistent buffers by name."""

from __future__ import annotations

import difflib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from gt import _gt
from gt._gt import Tensor
from gt.autograd import no_grad
from gt.config import get_signal_config

from .hooks import Flagged, RemovableHandle, add_hook
from .parameter import Parameter

if TYPE_CHECKING:
    from .module import Module

#: The name under which `get_extra_state` is saved.
EXTRA_STATE = "_extra_state"


class _Keys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class IncompatibleKeys(_Keys):
    """The names that a loaded state lacked, and those that the module does not have."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_{super().__repr__()}"  # PyTorch's class has an underscore

    __str__ = __repr__


class States:
    """The part of a module that saves and loads its state and that of its descendants."""

    _version = 1

    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_pre_hooks: OrderedDict[Any, Any]
    _state_dict_hooks: OrderedDict[Any, Any]
    _load_state_dict_pre_hooks: OrderedDict[Any, Any]
    _load_state_dict_post_hooks: OrderedDict[Any, Any]

    def get_extra_state(self) -> Any:
        """Return extra state to save with the module; subclasses define it."""
        raise RuntimeError(f"{type(self).__name__} defines no get_extra_state()")

    def set_extra_state(self, state: Any) -> None:
        """Restore what `get_extra_state` returned; subclasses define it."""
        raise RuntimeError(f"{type(self).__name__} defines no set_extra_state()")

    def _has_extra(self, what: str) -> bool:
        return getattr(type(self), what) is not getattr(States, what)

    # Saving.

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> OrderedDict[str, Tensor]:
        """Return all parameters and persistent buffers by name, detached.

        Args:
            args: `destination`, `prefix` and `keep_vars` by position, as in older programs.
            destination: a dict to fill and return instead of a new one.
            prefix: prepended to every name.
            keep_vars: whether to return the parameters themselves instead of detached tensors.

        The tensors share memory with the module: clone() those that later training must not change.
        """
        given = dict(zip(("destination", "prefix", "keep_vars"), args, strict=False))
        destination = given.get("destination", destination)
        prefix, keep_vars = given.get("prefix", prefix), given.get("keep_vars", keep_vars)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, child in self._children_with_state():
            child.state_dict(
                destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
            )
        for hook in self._state_dict_hooks.values():
            changed = hook(self, destination, prefix, local)
            destination = destination if changed is None else changed
        return destination

    def _children_with_state(self) -> list[tuple[str, Module]]:
        children = self._all_children()  # type: ignore[attr-defined]
        return [(name, child) for name, child in children if child is not None]

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        """Add the module's own parameters and persistent buffers to a state."""
        for name, tensor in self._own_state().items():
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if self._has_extra("get_extra_state"):
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def _own_state(self) -> dict[str, Tensor]:
        """Return the module's own parameters and persistent buffers by name."""
        own = dict(self._own_parameters())  # type: ignore[attr-defined]
        listed = [name for name in own if name.startswith("_parameters.")]
        if listed:
            # A parameter in the model's own list that also has a name is saved under its name only.
            named = {name for name, _ in self.named_parameters()}  # type: ignore[attr-defined]
            own = {name: own[name] for name in own if name in named or name not in listed}
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                own[name] = buffer
        return own

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call hook(module, prefix, keep_vars) before a state is saved."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call hook(module, state_dict, prefix, local_metadata) once a state is complete."""
        return add_hook(self._state_dict_hooks, hook)

    _register_state_dict_hook = register_state_dict_post_hook

    # Loading.

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Load the values of a state: tensors, or arrays of another framework such as PyTorch.

        Args:
            state_dict: values by name, in the module's shapes.
            strict: whether missing and unexpected names are errors.
            assign: whether the given tensors replace the module's. Otherwise their values are
                copied into the module's tensors, which keep their dtypes.

        Returns:
            `missing_keys` and `unexpected_keys`.

        Raises:
            RuntimeError: names or shapes do not match. The message lists them all, and no value
                has been loaded.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        state = OrderedDict(state_dict)
        loading = _Loading(assign)
        self._load(state, loading, "", getattr(state_dict, "_metadata", None))
        expected = loading.expected
        unexpected = loading.unexpected + [name for name in state if name not in expected]
        incompatible = IncompatibleKeys(loading.missing, unexpected)
        for module in self.modules():  # type: ignore[attr-defined]
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, incompatible) is not None:
                    raise RuntimeError(
                        "a hook of register_load_state_dict_post_hook returned something: it "
                        "should change the given keys in place"
                    )
        errors = (_names_that_differ(*incompatible) if strict else []) + loading.errors
        if errors:
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t"
                + "\n\t".join(errors)
            )
        for put in loading.puts:
            put()
        return incompatible

    def _load(self, state: dict[str, Any], loading: _Loading, prefix: str, metadata: Any) -> None:
        local = {} if metadata is None else metadata.get(prefix[:-1], {})
        local = {**local, "assign_to_params_buffers": loading.assign, _PUTS: loading.puts}
        lists = (loading.missing, loading.unexpected, loading.errors)
        self._load_from_state_dict(state, prefix, local, True, *lists)
        loading.expected.update(prefix + name for name in self._own_state())
        if self._has_extra("set_extra_state"):
            loading.expected.add(prefix + EXTRA_STATE)
        for name, child in self._children_with_state():
            child._load(state, loading, f"{prefix}{name}.", metadata)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Find the values of the module's own parameters and buffers in a state.

        Subclasses that read older layouts change `state_dict` and then call this method. Within
        `load_state_dict`, no value is written before the states of all modules have been checked.
        """
        given = (state_dict, prefix, local_metadata, strict)
        for hook in self._load_state_dict_pre_hooks.values():
            before = (self,) if hook.with_kwargs else ()
            hook.function(*before, *given, missing_keys, unexpected_keys, error_msgs)
        puts = local_metadata.get(_PUTS, [])
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, own in self._own_state().items():
            if prefix + name not in state_dict:
                missing_keys.append(prefix + name)
                continue
            value = state_dict[prefix + name]
            problem = _problem(prefix + name, own, value, assign)
            if problem is None:
                puts.append(partial(self._put, name, own, value, assign))
            else:
                error_msgs.append(problem)
        if self._has_extra("set_extra_state"):
            if prefix + EXTRA_STATE in state_dict:
                puts.append(partial(self.set_extra_state, state_dict[prefix + EXTRA_STATE]))
            else:
                missing_keys.append(prefix + EXTRA_STATE)
        if _PUTS not in local_metadata:
            for put in puts:
                put()

    def _put(self, name: str, own: Tensor, value: Any, assign: bool) -> None:
        """Copy a value into one of the module's tensors, or replace the tensor by it."""
        value = value if isinstance(value, Tensor) else _gt.tensor_beside(own, _plain(value))
        if not assign:
            with no_grad():
                own.copy_(_placed_as(own, value))
            return
        if isinstance(own, Parameter) and not isinstance(value, Parameter):
            value = Parameter(value, own.requires_grad)
        elif isinstance(own, Parameter):
            value.requires_grad_(own.requires_grad)
        holder, key = self._place_of(name)  # type: ignore[attr-defined]
        holder[key] = value

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call a hook before the module's own values are looked up in a state.

        The hook is called as hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs), and may change the state.
        """
        return add_hook(self._load_state_dict_pre_hooks, Flagged(hook, with_kwargs=True))

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        """Call a hook before the module's own values are looked up, by default without `module`."""
        return add_hook(self._load_state_dict_pre_hooks, Flagged(hook, with_module))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call hook(module, incompatible_keys) once all names of a state have been checked."""
        return add_hook(self._load_state_dict_post_hooks, hook)


#: The entry of `local_metadata` with the list of functions that write the values.
_PUTS = "puts_of_this_load"


class _Loading:
    """Findings of one `load_state_dict`, collected over the module and its descendants."""

    def __init__(self, assign: bool):
        self.assign = assign
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.errors: list[str] = []
        self.expected: set[str] = set()
        self.puts: list[Callable[[], Any]] = []


def _plain(value: Any) -> Any:
    """Return an array-like detached from its framework's autograd history."""
    return value.detach() if hasattr(value, "detach") else value


def _placed_as(own: Tensor, value: Tensor) -> Tensor:
    """Return a value, sharded if the signal that a parameter was created under says so."""
    signal = own._signal if isinstance(own, Parameter) else None
    config = get_signal_config(signal) if signal is not None else None
    if signal is None or config is None or config.shard is None:
        return value
    return _gt.signal_tensor(value.detach(), signal, None)


def _problem(name: str, own: Tensor, value: Any, assign: bool) -> str | None:
    """Return why a value cannot be loaded into a tensor, or None if it can."""
    shape = getattr(value, "shape", None)
    if shape is None:
        return (
            f'While copying the parameter named "{name}", expected gt.Tensor or Tensor-like object '
            f"from checkpoint but received {type(value)}"
        )
    if tuple(shape) != tuple(own.shape):
        return (
            f"size mismatch for {name}: copying a param with shape {tuple(shape)} from checkpoint, "
            f"the shape in current model is {tuple(own.shape)}."
        )
    return None


def _names_that_differ(missing: list[str], unexpected: list[str]) -> list[str]:
    """Return messages about unexpected and missing names, with hints of similar names."""
    told = []
    for what, names, others in [
        ("Unexpected key(s)", unexpected, missing),
        ("Missing key(s)", missing, unexpected),
    ]:
        if names:
            told.append(f"{what} in state_dict: {', '.join(map(repr, names))}.")
            told += _nearest(names, others) if what.startswith("Missing") else []
    if told:
        told.append("hint: strict=False loads the names that match")
    return told


def _nearest(missing: list[str], unexpected: list[str]) -> list[str]:
    """Return hints of unexpected names similar to missing ones, for the first 20 missing names."""
    hints = []
    for name in missing[:20]:
        near = difflib.get_close_matches(name, unexpected, n=1)
        if near:
            hints.append(f"hint: {name!r} may be {near[0]!r} in the state")
    return hints
