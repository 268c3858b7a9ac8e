"""Functions with user-defined gradients."""

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gt import _gt
from gt._gt import Tensor, is_grad_enabled, public_function


class Context:
    """The state that a function's `forward` keeps for its `backward`; attributes may be added."""

    def __init__(self, needs_input_grad: tuple[bool, ...]):
        #: For each argument of `forward`, whether it requires a gradient.
        self.needs_input_grad = needs_input_grad
        #: Snapshots of the saved tensors, and the original objects, to identify outputs by.
        self._saved: tuple[Tensor | None, ...] = ()
        self._originals: tuple[Tensor | None, ...] = ()
        self._constant: tuple[Tensor, ...] = ()
        #: The saved tensors that are outputs: position among the saved, index of the output.
        self._saved_outputs: dict[int, int] = {}

    if TYPE_CHECKING:
        # A function may keep anything else in attributes of its own.
        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs or outputs of `forward`; `backward` reads them from `saved_tensors`."""
        self._originals = tensors
        self._saved = tuple(
            tensor if tensor is None else _gt.snapshot(tensor) for tensor in tensors
        )

    @property
    def saved_tensors(self) -> tuple[Tensor | Any, ...]:
        """The tensors that `forward` saved."""
        return self._saved

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Declare outputs that no gradient flows through."""
        self._constant = outputs


#: PyTorch's name of the context.
FunctionCtx = Context


class Function:
    """A computation with a user-defined gradient.

    >>> class Cube(gt.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return grad * 3 * x**2
    >>> y = Cube.apply(gt.tensor([2.0], requires_grad=True))

    `backward` receives the gradient of each output and returns one for each argument of `forward`,
    None for arguments without a gradient. If there is a static method
    `setup_context(ctx, inputs, output)`, `forward` takes only the arguments.
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs: a tensor or a tuple of them."""
        raise NotImplementedError("a Function must define forward(ctx, ...)")

    @staticmethod
    def backward(*args: Any, **kwargs: Any) -> Any:
        """Return the gradient of each argument of `forward`: called with `ctx` and gradients."""
        raise NotImplementedError("a Function must define backward(ctx, ...)")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Compute the outputs, and record the function on the tape if a gradient is required."""
        context = Context(tuple(isinstance(arg, Tensor) and arg.requires_grad for arg in args))
        result = cls._compute(context, args)
        if not (is_grad_enabled() and any(context.needs_input_grad)):
            return result
        outputs = result if isinstance(result, tuple) else (result,)
        recorded = cls._record(context, args, outputs)
        return recorded if isinstance(result, tuple) else recorded[0]

    @classmethod
    def _compute(cls, context: Context, args: tuple[Any, ...]) -> Any:
        previous = _gt.set_grad_enabled(False)
        try:
            setup = getattr(cls, "setup_context", None)
            if setup is None:
                return cls.forward(context, *args)
            result = cls.forward(*args)
            setup(context, args, result)
            return result
        finally:
            _gt.set_grad_enabled(previous)

    @classmethod
    def _record(
        cls, context: Context, args: tuple[Any, ...], outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        tensors = [output for output in outputs if isinstance(output, Tensor)]
        if not tensors:
            raise TypeError(f"{cls.__name__}.forward must return a tensor or a tuple with one")
        for position, saved in enumerate(context._originals):
            index = _index(tensors, saved)
            if index is not None:
                context._saved_outputs[position] = index
        context._originals = ()
        recorded = iter(
            _gt.record_function(
                cls.__name__,
                [arg for arg in args if isinstance(arg, Tensor)],
                tensors,
                [_index(context._constant, tensor) is None for tensor in tensors],
                list(context._saved_outputs.values()),
                cls._backward(context, args, outputs),
            )
        )
        return tuple(next(recorded) if isinstance(out, Tensor) else out for out in outputs)

    @classmethod
    def _backward(
        cls, context: Context, args: tuple[Any, ...], outputs: tuple[Any, ...]
    ) -> Callable[..., Any]:
        """Return the callback of the tape; it must not keep unsaved arguments or outputs alive."""
        places = [place for place, arg in enumerate(args) if isinstance(arg, Tensor)]
        is_tensor = [isinstance(output, Tensor) for output in outputs]
        return functools.partial(_call_backward, cls, context, len(args), places, is_tensor)


@public_function
def _call_backward(
    cls: type[Function],
    context: Context,
    count: int,
    places: list[int],
    is_tensor: list[bool],
    grads: tuple[Tensor, ...],
    kept: tuple[Tensor, ...],
) -> list[Tensor | None]:
    """Return the gradients of the tensors among the arguments of `forward`.

    Args:
        cls: the function.
        context: what `forward` received.
        count: the number of arguments of `forward`.
        places: the indices of tensors among them.
        is_tensor: whether each output is a tensor.
        grads: the gradients of the outputs that are tensors.
        kept: the saved outputs.
    """
    given = iter(grads)
    without_history = context._saved
    with_history = list(without_history)
    for position, output in zip(context._saved_outputs, kept, strict=True):
        with_history[position] = output
    context._saved = tuple(with_history)
    try:
        result = cls.backward(context, *(next(given) if is_ else None for is_ in is_tensor))
    finally:
        # Outputs with history would keep the graph alive, and the graph this context.
        context._saved = without_history
    return _gradients(cls.__name__, result, count, places)


def _index(tensors: Sequence[Tensor | None], wanted: Tensor | None) -> int | None:
    """Return the index of a tensor object in a list, or None."""
    if wanted is None:
        return None
    return next((index for index, tensor in enumerate(tensors) if tensor is wanted), None)


def _gradients(name: str, result: Any, count: int, places: list[int]) -> list[Tensor | None]:
    """Return the gradients of the tensors among the arguments, from those of all arguments."""
    result = result if isinstance(result, tuple) else (result,)
    if len(result) < count or any(grad is not None for grad in result[count:]):
        raise RuntimeError(
            f"{name}.backward returned {len(result)} gradients for {count} arguments of forward\n"
            "  hint: return one for each, None for arguments without a gradient"
        )
    for place, grad in enumerate(result[:count]):
        if grad is not None and not isinstance(grad, Tensor):
            raise TypeError(
                f"{name}.backward: gradient {place} is of type {type(grad).__name__}, not a tensor"
            )
        if grad is not None and place not in places:
            raise RuntimeError(
                f"{name}.backward: argument {place} of forward is no tensor: return None for it"
            )
    return [result[place] for place in places]


class _NotTwice(Function):
    """The identity, whose backward raises."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(tensor.clone() for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a `backward` whose own gradient is not defined: computing it raises RuntimeError."""

    @functools.wraps(fn)
    def once(ctx: Any, *args: Any) -> Any:
        before = _gt.set_grad_enabled(False)
        try:
            outputs = fn(ctx, *args)
        finally:
            _gt.set_grad_enabled(before)
        recorded = is_grad_enabled() and any(
            isinstance(arg, Tensor) and arg.requires_grad for arg in args
        )
        if not recorded:
            return outputs
        several = outputs if isinstance(outputs, tuple) else (outputs,)
        tensors = [out.detach().requires_grad_() for out in several if isinstance(out, Tensor)]
        marked = _NotTwice.apply(*tensors)
        left = iter(marked if isinstance(marked, tuple) else (marked,))
        several = tuple(next(left) if isinstance(out, Tensor) else out for out in several)
        return several if isinstance(outputs, tuple) else several[0]

    return once
