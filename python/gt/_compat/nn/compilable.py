"""`Module.compile`, which makes a module hot without a wrapper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import hooks as _hooks

#: Attributes that are not copied or pickled with a module.
_UNCOPIED = ("_compiled_call_impl",)


class Compilable:
    """The part of a module that implements `Module.compile`."""

    #: The compiled form of `_call_impl`; None until `compile` is called.
    _compiled_call_impl: Callable[..., Any] | None = None

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        """Call forward and the hooks around it."""
        return _hooks.call(self, args, kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Mark the module as hot: from its second call on, it is sent and run as one plan.

        Args:
            args: as for `gt.compile`, after the function.
            kwargs: as for `gt.compile`.
        """
        from gt._compile import compile

        named = {"name": type(self).__qualname__, **kwargs}
        compiled = compile(self._call_impl, *args, **named)
        self._compiled_call_impl = None if compiled == self._call_impl else compiled

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _UNCOPIED}
