"""The parametrizations of one tensor, with the tensors that they compute it from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gt._gt import Tensor
from gt.autograd import no_grad

from ..containers import ModuleList
from ..module import Module
from ..parameter import Parameter


class ParametrizationList(ModuleList):
    """The type of `module.parametrizations.weight`: the parametrizations of a tensor, in order.

    Args:
        modules: the parametrizations, at least one.
        original: the parameter or buffer to parametrize.
        unsafe: whether to allow results of another shape or dtype.

    It holds the tensor `original`, or `original0`, `original1`, ... if the first parametrization's
    `right_inverse` returns several tensors.
    """

    original: Tensor
    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False):
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        with no_grad():
            new = self._inverse(original, needed=False)
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        expected, dtype = tuple(original.shape), original.dtype
        if self.is_tensor:
            if new.dtype != dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {dtype}\nright_inverse(original).dtype: {new.dtype}"
                )
            register_tensor(self, "original", set_value(original, new))
        else:
            self._register_several(new, original)
        if not unsafe:
            self._check(expected, dtype)

    def original_names(self) -> list[str]:
        """Return the names of the tensors that the parametrizations compute from."""
        if self.is_tensor:
            return ["original"]
        return [f"original{index}" for index in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Set the original tensors from a value, by each parametrization's `right_inverse`.

        Args:
            value: the new value of the parametrized tensor.
        """
        with no_grad():
            new = self._inverse(value, needed=True)
            if self.is_tensor and not isinstance(new, Tensor):
                raise ValueError(
                    f"`right_inverse` should return a tensor. Got {type(new).__name__}"
                )
            if not self.is_tensor and (isinstance(new, Tensor) or len(new) != self.ntensors):
                got = type(new).__name__ if isinstance(new, Tensor) else f"{len(new)} of them"
                raise ValueError(
                    f"'right_inverse' must return a sequence of {self.ntensors} tensors. Got {got}."
                )
            for name, tensor in zip(
                self.original_names(), [new] if self.is_tensor else new, strict=True
            ):
                own = getattr(self, name)
                if tensor.dtype != own.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {tensor.dtype} while "
                        f"`{name}` has dtype {own.dtype}"
                    )
                setattr(self, name, set_value(own, tensor))

    def forward(self) -> Tensor:
        """Compute the parametrized tensor."""
        computed: Any = [getattr(self, name) for name in self.original_names()]
        parametrizations = iter(self)
        computed = next(parametrizations)(*computed)
        for parametrization in parametrizations:
            computed = parametrization(computed)
        return computed

    def _inverse(self, value: Tensor, needed: bool) -> Any:
        """Apply all inverses, the last first; if not `needed`, missing ones are the identity."""
        new: Any = value
        for parametrization in reversed(list(self)):
            if hasattr(parametrization, "right_inverse"):
                try:
                    new = parametrization.right_inverse(new)
                except NotImplementedError:
                    if needed:
                        raise
            elif needed:
                raise RuntimeError(
                    f"parametrization {type(parametrization).__name__} does not implement "
                    "right_inverse."
                )
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        return new

    def _register_several(self, tensors: Sequence[Any], original: Tensor) -> None:
        for index, tensor in enumerate(tensors):
            if not isinstance(tensor, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                    f"tuple...). Got element {index} of the sequence with type "
                    f"{type(tensor).__name__}."
                )
            if isinstance(original, Parameter):
                tensor = Parameter(tensor, original.requires_grad)
            register_tensor(self, f"original{index}", tensor)

    def _check(self, shape: tuple[int, ...], dtype: Any) -> None:
        """Raise ValueError if the parametrizations change the shape or dtype."""
        computed = self()
        if not isinstance(computed, Tensor):
            raise ValueError(
                f"A parametrization must return a tensor. Got {type(computed).__name__}."
            )
        for what, given, expected in (
            ("dtype", computed.dtype, dtype),
            ("shape", tuple(computed.shape), shape),
        ):
            if given != expected:
                raise ValueError(
                    f"Registering a parametrization may not change the {what} of the tensor, "
                    f"unless `unsafe` flag is enabled.\nunparametrized {what}: {expected}\n"
                    f"parametrized {what}: {given}"
                )


def register_tensor(module: Module, name: str, tensor: Tensor) -> None:
    """Register a tensor as a parameter or a buffer, depending on its kind."""
    if isinstance(tensor, Parameter) or (tensor.requires_grad and tensor.is_leaf):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def set_value(tensor: Tensor, value: Tensor) -> Tensor:
    """Set a tensor to a value and return it; return a new tensor if the value's shape differs."""
    if value is tensor:
        return tensor
    if value.shape == tensor.shape:
        tensor.data = value.detach().clone()
        return tensor
    if isinstance(tensor, Parameter):
        return Parameter(value.detach(), tensor.requires_grad)
    return value.detach().requires_grad_(tensor.requires_grad)


def expect_like(what: str, given: Any, expected: Tensor) -> None:
    """Raise ValueError if something is not a tensor of the expected shape and dtype."""
    if not isinstance(given, Tensor):
        raise ValueError(f"{what} must return a tensor. Got {type(given).__name__}.")
    if given.dtype != expected.dtype or given.shape != expected.shape:
        raise ValueError(
            f"{what} may not change the dtype or shape of the tensor, unless the `unsafe` flag is "
            f"enabled.\nbefore: {expected.dtype} of shape {expected.shape}\n"
            f"after: {given.dtype} of shape {given.shape}"
        )
