"""Calls of modules, and the hooks around them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeAlias, TypeVar, overload

from .hooks import Flagged, RemovableHandle, add_hook, call, everywhere

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)

#: Called before a backward, with the module and the gradients of its outputs.
BackwardPreHook: TypeAlias = Callable[[Any, Any], object]
#: Called after a backward, with the module and the gradients of its inputs and outputs.
BackwardHook: TypeAlias = Callable[[Any, Any, Any], object]


class HasForward(Protocol[P, R_co]):
    """A module as type checkers see it: a call takes and returns what its `forward` does."""

    def forward(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Compute the module's result."""
        ...


class Calling:
    """The part of a module that is called: `forward`, and the hooks around it."""

    _forward_pre_hooks: OrderedDict[int, Any]
    _forward_hooks: OrderedDict[int, Any]
    _backward_pre_hooks: OrderedDict[int, Any]
    _backward_hooks: OrderedDict[int, Any]
    _compiled_call_impl: Callable[..., Any] | None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the module's result; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} must define forward()")

    if TYPE_CHECKING:

        def __call__(self: HasForward[P, R_co], *args: P.args, **kwargs: P.kwargs) -> R_co:
            """Compute the module's result."""

    else:

        def __call__(self, *args, **kwargs):
            """Compute the module's result."""
            if not (
                self._forward_hooks
                or self._forward_pre_hooks
                or self._backward_hooks
                or self._backward_pre_hooks
                or everywhere
                or self._compiled_call_impl
            ):
                return self.forward(*args, **kwargs)
            if self._compiled_call_impl:
                return self._compiled_call_impl(*args, **kwargs)
            return call(self, args, kwargs)

    @overload
    def register_forward_pre_hook(
        self,
        hook: Callable[[Any, tuple[Any, ...]], object],
        *,
        prepend: bool = False,
        with_kwargs: Literal[False] = False,
    ) -> RemovableHandle: ...
    @overload
    def register_forward_pre_hook(
        self, hook: Callable[..., object], *, prepend: bool = False, with_kwargs: bool
    ) -> RemovableHandle: ...
    def register_forward_pre_hook(
        self, hook: Callable[..., object], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call hook(module, args) before each forward; a result other than None replaces `args`.

        Args:
            hook: with `with_kwargs`, it is called as hook(module, args, kwargs) and returns a tuple
                (args, kwargs), or None.
            prepend: whether to call it before the hooks that are already registered.
            with_kwargs: whether to pass the keyword arguments to it.
        """
        return add_hook(self._forward_pre_hooks, Flagged(hook, with_kwargs), prepend)

    @overload
    def register_forward_hook(
        self,
        hook: Callable[[Any, tuple[Any, ...], Any], object],
        *,
        prepend: bool = False,
        with_kwargs: Literal[False] = False,
        always_call: bool = False,
    ) -> RemovableHandle: ...
    @overload
    def register_forward_hook(
        self,
        hook: Callable[..., object],
        *,
        prepend: bool = False,
        with_kwargs: bool,
        always_call: bool = False,
    ) -> RemovableHandle: ...
    def register_forward_hook(
        self,
        hook: Callable[..., object],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call hook(module, args, output) after each forward.

        A result other than None replaces the output. The hook is removed by `remove()` of the
        returned handle, or at the end of a `with` block over the handle. With `always_call`, the
        hook is also called when the forward raises, with None as output.
        """
        flagged = Flagged(hook, with_kwargs, always_call)
        return add_hook(self._forward_hooks, flagged, prepend)

    def register_full_backward_pre_hook(
        self, hook: BackwardPreHook, prepend: bool = False
    ) -> RemovableHandle:
        """Call hook(module, grad_output) before the module's backward."""
        return add_hook(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(
        self, hook: BackwardHook, prepend: bool = False
    ) -> RemovableHandle:
        """Call hook(module, grad_input, grad_output) after the module's backward.

        A result other than None replaces `grad_input`.
        """
        return add_hook(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: BackwardHook) -> RemovableHandle:
        """Call `register_full_backward_hook`, under its older name."""
        return self.register_full_backward_hook(hook)
