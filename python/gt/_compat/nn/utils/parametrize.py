"""Parametrizations: tensors of a module that are computed from others when they are accessed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gt._gt import Tensor
from gt._public import show_callers
from gt.autograd import no_grad

from ..containers import ModuleDict
from ..module import Module
from ..parameter import Parameter
from ._parametrization_list import (
    ParametrizationList,
    expect_like,
    register_tensor,
    set_value,
)

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]


class _Cache:
    """Values of parametrized tensors, while `cached` blocks are open."""

    depth = 0
    #: By the module's id and name. The module is kept alive, so that its id stays unique.
    values: dict[tuple[int, str], tuple[Module, Tensor]] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor only once in a `with` block.

    >>> with gt.nn.utils.parametrize.cached():
    ...     pass
    """
    _Cache.depth += 1
    try:
        yield
    finally:
        _Cache.depth -= 1
        if not _Cache.depth:
            _Cache.values = {}


def register_parametrization(
    module: Any, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Any:
    """Compute a parameter or buffer of a module by a parametrization, another module.

    `module.weight` is then `parametrization(original)`, and the trained tensor is
    `module.parametrizations.weight.original`. Several parametrizations are applied one after
    another. The optional method `right_inverse(value)` of a parametrization returns the `original`
    for a value: it is called with the current value, and with each value that is assigned later. It
    may return several tensors, named `original0`, `original1`, ..., which are then the arguments of
    the parametrization.

    Args:
        module: the module, which is changed.
        tensor_name: the name of the parameter or buffer.
        parametrization: the module that computes the tensor.
        unsafe: whether to allow results of another shape or dtype, which are then not checked.

    Returns:
        The module.

    Raises:
        ValueError: no parameter or buffer has the name, or the shape or dtype would change.

    `original` is the same object as the former parameter, so optimizers keep training it, unless
    `right_inverse` returns several tensors or another shape: pass the new tensors to the optimizer.

    >>> class Symmetric(gt.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).T
    >>> layer = gt.nn.utils.parametrize.register_parametrization(
    ...     gt.nn.Linear(3, 3), "weight", Symmetric()
    ... )
    >>> gt.equal(layer.weight, layer.weight.T)
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_another(module, tensor_name, parametrization)
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        listed = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            module.__class__ = _parametrized_class(type(module))
            module.parametrizations = ModuleDict()
        setattr(type(module), tensor_name, _computed(tensor_name))
        module.parametrizations[tensor_name] = listed
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether a tensor of a module, or any of its tensors, is parametrized."""
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Make a parametrized tensor a parameter or buffer again.

    Args:
        module: the module, which is changed.
        tensor_name: the name of the tensor.
        leave_parametrized: whether the tensor keeps its computed value; otherwise it takes the
            value of `original`, which must be a single tensor.

    Returns:
        The module.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if not parametrizations.is_tensor and not leave_parametrized:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    if not parametrizations.is_tensor:
        value = getattr(module, tensor_name)
        tensor = Parameter(value) if value.requires_grad else value
    elif leave_parametrized:
        with no_grad():
            tensor = set_value(parametrizations.original, getattr(module, tensor_name))
    else:
        tensor = parametrizations.original
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    register_tensor(module, tensor_name, tensor)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """Return the class that a module had before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Any, to_module: Any, tensor_name: str | None = None
) -> Any:
    """Register the parametrizations of a module on another, with the tensors they compute from.

    Args:
        from_module: the source; if it is not parametrized, nothing happens.
        to_module: the target; parameters that it lacks are added.
        tensor_name: the name of the one tensor to transfer; None for all.

    Returns:
        `to_module`.
    """
    if not is_parametrized(from_module):
        return to_module
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        given = from_module.parametrizations[name]
        for parametrization in given:
            register_parametrization(to_module, name, parametrization)
        for key in given.original_names():
            setattr(to_module.parametrizations[name], key, getattr(given, key))
    return to_module


def _check_another(module: Module, tensor_name: str, parametrization: Any) -> None:
    """Raise ValueError if a further parametrization would change the shape or dtype."""
    before = getattr(module, tensor_name)
    after = parametrization(before)
    expect_like("A parametrization", after, before)
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(after)
    except NotImplementedError:
        return
    expect_like("parametrization.right_inverse", back, before)


def _parametrized_class(cls: type) -> type:
    """Return a subclass for one module; a property is added to it per parametrized tensor."""

    def getstate(self: Module) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict()"
        )

    def deepcopy(self: Module, memo: dict[int, Any]) -> Any:
        copied = cls.__deepcopy__(self, memo)  # type: ignore[attr-defined]
        copied.__class__ = _parametrized_class(cls)
        for name in copied.parametrizations:
            setattr(type(copied), name, _computed(name))
        return copied

    own = {"__getstate__": getstate, "__deepcopy__": deepcopy}
    return type(f"Parametrized{cls.__name__}", (cls,), own)


def _computed(tensor_name: str) -> property:
    """Return the property that computes a parametrized tensor and can be assigned to."""

    def value(self: Any) -> Tensor:
        key = (id(self), tensor_name)
        if key in _Cache.values:
            return _Cache.values[key][1]
        computed = self.parametrizations[tensor_name]()
        if _Cache.depth:
            _Cache.values[key] = (self, computed)
        return computed

    def assign(self: Any, value: Tensor) -> None:
        self.parametrizations[tensor_name].right_inverse(value)

    return property(value, assign)


show_callers(globals())
