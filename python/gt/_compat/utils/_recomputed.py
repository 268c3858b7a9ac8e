"""A call whose intermediate results are recomputed in the backward pass."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gt import _gt
from gt._gt import Tensor
from gt._lines import warn
from gt.autograd import enable_grad, is_grad_enabled
from gt.ops.autocast import set_lower, state

from ._closures import used_tensors


class CheckpointError(RuntimeError):
    """A function's results differ in shape or dtype when they are recomputed."""

    __module__ = "gt.utils.checkpoint"


class Call:
    """A call of a function that is recomputed in the backward pass."""

    checks = True
    debug = False

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        context: Any,
        draws: bool,
    ):
        self.function, self.context = function, context
        self.rng = _gt.random_state() if draws else None
        self.lower = state.lower
        given = {id(each): each for each in _tensors((args, kwargs))}
        kept = {key: _gt.snapshot(each) for key, each in given.items()}
        #: The arguments, with snapshots of tensors.
        self.arguments = _replaced((args, kwargs), kept)
        #: The tensors among them that require gradients, and their snapshots.
        self.given = [each for each in given.values() if each.requires_grad]
        self.kept = [kept[id(each)] for each in self.given]
        #: The parameters that the function uses in addition.
        self.used = [
            each
            for each in used_tensors(function, args, kwargs)
            if each.requires_grad and each.is_leaf and id(each) not in given
        ]
        #: Shape and dtype of each tensor among the results.
        self.metas: list[tuple[Any, ...]] = []
        #: The indices of the results that gradients flow through.
        self.places: list[int] = []

    def forward(self) -> Any:
        """Compute the results, drop their history, and record the call on the tape as one step."""
        copies = self._copies(self.kept)
        results = self._run(copies)
        tensors = _tensors(results)
        if any(_gt.reaches_others(each, [*copies, *self.used]) for each in tensors):
            with self._rng_again():
                return self._as_it_is()
        self.metas = [(tuple(each.shape), each.dtype) for each in tensors]
        self.places = [place for place, each in enumerate(tensors) if each.requires_grad]
        if not self.places:
            return results
        made = [tensors[place].detach() for place in self.places]
        inputs = [*self.given, *self.used]
        recorded = _gt.record_function(
            "checkpoint", inputs, made, [True] * len(made), [], self._backward
        )
        places = zip(self.places, recorded, strict=True)
        return _replaced(results, {id(tensors[place]): each for place, each in places})

    def _as_it_is(self) -> Any:
        warn(
            "checkpoint: the function uses a tensor that requires gradients, is not among its "
            "arguments, and is computed from others or was not found: its intermediate results "
            "are kept\n  hint: pass the tensor, or the module that holds it, as an argument",
        )
        args, kwargs = self.arguments
        return self.function(*args, **kwargs)

    def _backward(self, grads: Sequence[Tensor], kept: Sequence[Tensor]) -> list[Tensor | None]:
        """Recompute the results, and return the gradients of arguments and used parameters."""
        again = is_grad_enabled()
        if again and self.used:
            self._check_apart()
        copies = [each.view_as(each) for each in self.kept] if again else self._copies(self.kept)
        with self._rng_again(), self._autocast_again(), self.context, enable_grad():
            tensors = _tensors(self._run(copies))
        self._check_same(tensors)
        pairs = [
            (tensors[place], grad)
            for place, grad in zip(self.places, grads, strict=True)
            if tensors[place].requires_grad
        ]
        inputs = [*copies, *self.used]
        if not pairs:
            return [None] * len(inputs)
        outputs, gradients = zip(*pairs, strict=True)
        return _gt.grad(list(outputs), list(gradients), inputs, again, again)

    def _run(self, copies: list[Tensor]) -> Any:
        """Call the function with copies of the tensors among its arguments."""
        mapping = {id(each): copy for each, copy in zip(self.kept, copies, strict=True)}
        args, kwargs = _replaced(self.arguments, mapping)
        return self.function(*args, **kwargs)

    def _copies(self, tensors: list[Tensor]) -> list[Tensor]:
        return [each.detach().requires_grad_() for each in tensors]

    def _check_same(self, tensors: list[Tensor]) -> None:
        metas = [(tuple(each.shape), each.dtype) for each in tensors]
        if len(metas) == len(self.metas) and (metas == self.metas or not self.checks):
            return
        told = ""
        if self.debug:
            told = "".join(
                f"\n  result {place}: {before} in the forward pass, {now} when recomputed"
                for place, (before, now) in enumerate(zip(self.metas, metas, strict=False))
                if before != now
            )
        raise CheckpointError(
            "checkpoint: the recomputed results have other shapes or dtypes\n"
            f"  in the forward pass: {len(self.metas)} tensors, now: {len(metas)}{told}\n"
            "  hint: the function must compute the same each time; debug=True lists the differences"
        )

    def _check_apart(self) -> None:
        """Raise if an argument has history, which gradients of gradients do not support here."""
        if any(_gt.reaches_others(each, []) and not each.is_leaf for each in self.kept):
            raise RuntimeError(
                "checkpoint: gradients of gradients through a function that uses parameters which "
                "are not among its arguments are not supported\n  hint: call the function without "
                "checkpoint here, or pass its parameters (gt.func.functional_call)"
            )

    @contextlib.contextmanager
    def _rng_again(self) -> Iterator[None]:
        if self.rng is None:
            yield
            return
        now = _gt.random_state()
        _gt.set_random_state(*self.rng)
        try:
            yield
        finally:
            _gt.set_random_state(*now)

    @contextlib.contextmanager
    def _autocast_again(self) -> Iterator[None]:
        if self.lower is None:
            yield
            return
        before = set_lower(self.lower)
        try:
            yield
        finally:
            set_lower(before)


def _tensors(value: Any) -> list[Tensor]:
    """Return the tensors in a value, also inside lists, tuples and dicts."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return (
        [each for one in value for each in _tensors(one)]
        if isinstance(value, (list, tuple))
        else []
    )


def _replaced(value: Any, mapping: dict[int, Tensor]) -> Any:
    """Return a value in which tensors are replaced, by their ids."""
    if isinstance(value, Tensor):
        return mapping.get(id(value), value)
    if isinstance(value, dict):
        changed = {key: _replaced(each, mapping) for key, each in value.items()}
        return changed if type(value) is dict else type(value)(changed)
    if isinstance(value, (list, tuple)):
        parts = [_replaced(each, mapping) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value
