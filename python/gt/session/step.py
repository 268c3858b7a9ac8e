"""Atomic updates of tensors: `gt.step`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gt import _gt
from gt._gt import Tensor


class step:
    """A context manager that makes the changes of its block atomic: all of them apply, or none.

    An optimizer's `step()` is atomic by itself; this is for updates by hand. If the computation of
    a value that the block assigns to a tensor fails, even later, all tensors keep their values from
    before the block. The block waits for no result. An exception in the block has the same effect.

    Args:
        what: the objects that the block may change: modules (their parameters and buffers),
            optimizers, tensors, or lists of these.

    >>> w, b = gt.ones(2), gt.zeros(1)
    >>> with gt.step(w, b):
    ...     b += 1
    ...     w -= gt.ones(3)[gt.tensor([0, 7], dtype=gt.int64)]
    >>> w, b
    (tensor([1., 1.], dtype=float32), tensor([0.], dtype=float32))
    """

    def __init__(self, *what: Any):
        if not what:
            raise TypeError("gt.step() needs what the block may change: a model, tensors")
        self._what = what
        self._begun: _gt.Step | None = None
        self._state: dict[Any, dict[str, Any]] = {}

    def __enter__(self) -> step:
        if self._begun is not None:
            raise RuntimeError("this step is already in use: make another gt.step(...)")
        tensors: list[Tensor] = []
        for one in self._what:
            self._take(one, tensors)
        self._begun = _gt.begin_step([{"params": tensors}], self._state)
        return self

    def __exit__(self, kind: Any, *error: Any) -> None:
        begun, self._begun = self._begun, None
        if begun is None:
            return
        if kind is None:
            begun.commit(self._state)
        else:
            begun.roll_back(self._state)

    def _take(self, one: Any, tensors: list[Tensor]) -> None:
        if isinstance(one, Tensor):
            tensors.append(one)
        elif hasattr(one, "param_groups"):
            tensors.extend(each for group in one.param_groups for each in group["params"])
            self._state.update(one.state)
        elif hasattr(one, "parameters") and hasattr(one, "buffers"):
            tensors.extend(one.parameters())
            tensors.extend(each for each in one.buffers() if each is not None)
        elif isinstance(one, Iterable) and not isinstance(one, (str, bytes)):
            for each in one.values() if isinstance(one, dict) else one:
                self._take(each, tensors)
        else:
            raise TypeError(
                f"gt.step: got {type(one).__name__}, expected modules, optimizers or tensors"
            )
