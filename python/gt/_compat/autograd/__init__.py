"""Gradient modes, gradients of tensors with respect to others, and custom functions."""

import functools
import inspect
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, TypeVar, cast, overload

from gt import _gt
from gt._arguments import brief, check_callable
from gt._gt import Tensor, is_grad_enabled
from gt._lines import warn
from gt._paths import add_modules
from gt._public import missing_name, show_callers

from .function import Function
from .variable import Variable

__all__ = [
    "Function",
    "GradcheckError",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]


F = TypeVar("F", bound=Callable[..., Any])


class _GradMode:
    mode: bool
    previous: list[bool]

    @overload
    def __new__(cls) -> "_GradMode": ...
    @overload
    def __new__(cls, function: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """Return a gradient mode, or a decorated function, as for `@gt.no_grad`."""
        mode = super().__new__(cls)
        mode.previous = []
        return mode if function is None else mode(function)

    def __enter__(self) -> "_GradMode":
        self.previous.append(_gt.set_grad_enabled(self.mode))
        return self

    def __exit__(self, *exception: object) -> None:
        _gt.set_grad_enabled(self.previous.pop())

    def __call__(self, function: F) -> F:
        return cast(F, self._decorated(function))

    def _decorated(self, function: Callable[..., Any]) -> Callable[..., Any]:
        check_callable("the decorated function", function)
        if inspect.isgeneratorfunction(function):
            return self._generator(function)

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return function(*args, **kwargs)

        return wrapped

    def _again(self) -> "_GradMode":
        """Return another context of the same mode, for one call."""
        again = object.__new__(type(self))
        again.mode, again.previous = self.mode, []
        return again

    def _generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a generator: its own code runs in the mode, the code of its callers does not."""

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            generator, resume = function(*args, **kwargs), (lambda: next(generator))
            while True:
                try:
                    with self._again():
                        value = resume()
                except StopIteration as end:
                    return end.value
                try:
                    sent = yield value
                    resume = functools.partial(generator.send, sent)
                except GeneratorExit:
                    generator.close()
                    raise
                except BaseException as error:
                    resume = functools.partial(generator.throw, error)

        return wrapped


class no_grad(_GradMode):
    """Turn recording off: `with gt.no_grad():` or `@gt.no_grad()`."""

    mode = False


class inference_mode(_GradMode):
    """Turn recording off, like `no_grad`; `inference_mode(False)` has no effect.

    PyTorch also forbids the use of the results in recorded operations later; GT allows it.
    """

    mode = False

    def __new__(cls, mode: Any = True) -> Any:
        """Return a gradient mode, or a decorated function, as for `@gt.inference_mode`."""
        if callable(mode):
            return super().__new__(cls, mode)
        made = super().__new__(cls)
        made.mode = is_grad_enabled() and not mode
        return made


class enable_grad(_GradMode):
    """Turn recording on again inside a block where it is off."""

    mode = True


class set_grad_enabled(_GradMode):
    """Turn recording on or off: immediately, or for a `with` block or decorated function."""

    #: The mode before; None in a context that is yet to be entered.
    before: bool | None = None

    def __new__(cls, mode: bool) -> "set_grad_enabled":
        """Set the mode, and return a context that restores the one before."""
        if callable(mode):
            raise TypeError(
                "set_grad_enabled: mode must be a bool, as in @gt.set_grad_enabled(False)"
            )
        if not isinstance(mode, (bool, int)):
            raise TypeError(f"set_grad_enabled: mode is {brief(mode)}, expected True or False")
        made = object.__new__(cls)
        made.mode, made.previous = bool(mode), []
        made.before = _gt.set_grad_enabled(made.mode)
        return made

    def __enter__(self) -> "set_grad_enabled":
        super().__enter__()
        if self.before is not None:
            self.previous[-1] = self.before
        return self

    def __call__(self, function: F) -> F:
        """Return the function with this mode; as in PyTorch, the mode is that of it alone."""
        if self.before is not None:
            _gt.set_grad_enabled(self.before)
        return super().__call__(function)


class set_detect_anomaly:
    """Warn, if `mode` is true, how to find NaNs; this itself checks nothing.

    Args:
        mode: whether to find NaNs in backward passes.
        check_nan: accepted for compatibility with PyTorch; it has no effect.
    """

    def __init__(self, mode: bool, check_nan: bool = True):
        if mode:
            warn(
                "detect_anomaly checks nothing itself: on workers that were started with "
                "GT_CHECK_NAN=1, the first operation that produces a NaN fails",
            )

    def __enter__(self) -> "set_detect_anomaly":
        return self

    def __exit__(self, *exception: object) -> None:
        pass


class detect_anomaly(set_detect_anomaly):
    """Call `set_detect_anomaly(True)`, as a `with` block."""

    def __init__(self, check_nan: bool = True):
        super().__init__(True, check_nan)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | Any, ...]:
    """Return the gradients of tensors with respect to others, without storing them anywhere.

    Args:
        outputs: the tensors where the pass starts; their gradients are added up.
        inputs: the tensors to differentiate by.
        grad_outputs: the gradient of each output; None for a single number, whose gradient is 1.
        retain_graph: keep the graph for another pass.
        create_graph: record the pass itself, for gradients of gradients.
        only_inputs: deprecated: other leaves never get gradients.
        allow_unused: return None for an input that the outputs do not depend on.
        is_grads_batched: whether `grad_outputs`, and then the results, have a batch axis in front.
        materialize_grads: return zeros instead of None.

    >>> x = gt.tensor([1.0, 2.0], requires_grad=True)
    >>> gt.autograd.grad((x**2).sum(), x)
    (tensor([2., 4.], dtype=float32),)
    """
    if not only_inputs:
        warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
        )
    if materialize_grads and allow_unused is False:
        raise ValueError("grad: materialize_grads=True needs allow_unused=True, or None")
    outputs, gradients = _with_gradients("grad", outputs, grad_outputs)
    inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    retain = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        grads = _batched(outputs, gradients, inputs, retain, create_graph)
    else:
        grads = _gt.grad(outputs, gradients, inputs, retain, create_graph)
    unused = [place for place, each in enumerate(grads) if each is None]
    if unused and not (allow_unused or materialize_grads):
        raise RuntimeError(
            f"grad: the output does not depend on input {unused[0]}\n  hint: allow_unused=True"
        )
    if materialize_grads:
        for place in unused:
            grads[place] = _zeros(inputs[place], gradients if is_grads_batched else None)
    return tuple(grads)


def _batched(
    outputs: list[Tensor],
    gradients: list[Tensor | None],
    inputs: list[Tensor],
    retain: bool,
    create: bool,
) -> list[Tensor | None]:
    """Return the gradients for a batch of gradients of the outputs, along a new first axis."""
    batches = [each for each in gradients if each is not None]
    if len(batches) < len(gradients):
        raise ValueError("grad: is_grads_batched needs a gradient for each output, not None")
    used: list[bool] = []

    def one(*given: Tensor) -> tuple[Tensor, ...]:
        grads = _gt.grad(outputs, list(given), inputs, True, create)
        used[:] = [each is not None for each in grads]
        return tuple(each for each in grads if each is not None)

    from gt.func import vmap

    found = iter(vmap(one)(*batches))
    if not retain:
        _gt.grad(outputs, [each[0] for each in batches], inputs, False, False)
    return [next(found) if each else None for each in used]


def _zeros(of: Tensor, batch: list[Any] | None) -> Tensor:
    """Return zeros like a tensor, with the batch axis of a batch of gradients."""
    zeros = of.detach() * 0
    return zeros if batch is None else zeros.expand(batch[0].shape[0], *of.shape)


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Add the gradients of tensors to those of all leaves that they depend on.

    Args:
        tensors: the tensors where the pass starts; their gradients are added up.
        grad_tensors: the gradient of each; None for a single number, whose gradient is 1.
        retain_graph: keep the graph for another pass.
        create_graph: record the pass itself, for gradients of gradients.
        inputs: the only leaves whose gradients are added to.
    """
    outputs, gradients = _with_gradients("backward", tensors, grad_tensors)
    if inputs is not None:
        inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    retain = create_graph if retain_graph is None else retain_graph
    _gt.backward(outputs, gradients, inputs, retain, create_graph)


def _with_gradients(
    name: str, outputs: Any, gradients: Any
) -> tuple[list[Tensor], list[Tensor | None]]:
    """Return outputs and their gradients as lists of equal length."""
    if isinstance(outputs, str) or not isinstance(outputs, Iterable):
        raise TypeError(
            f"{name}: the output is {brief(outputs)}, expected a tensor or a list of them"
        )
    outputs = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    if gradients is None or isinstance(gradients, Tensor):
        gradients = [gradients] * len(outputs) if gradients is None else [gradients]
    gradients = list(gradients)
    for what, given in (("an output", outputs), ("a gradient", gradients)):
        for one in given:
            if not isinstance(one, Tensor) and (given is outputs or one is not None):
                raise TypeError(f"{name}: {what} is {brief(one)}, expected a tensor")
    if not outputs or len(gradients) != len(outputs):
        raise ValueError(
            f"{name}: there are {len(gradients)} gradients for {len(outputs)} outputs\n"
            "  hint: pass one for each; None for a single number"
        )
    return outputs, gradients


# These modules import the functions above.
from . import functional, graph  # noqa: E402
from .gradcheck import GradcheckError, gradcheck, gradgradcheck  # noqa: E402

add_modules(__name__, {"anomaly_mode": __name__, "grad_mode": __name__})


def __getattr__(name: str) -> object:
    """Import one of the modules that few programs use."""
    if name in ("forward_ad", "profiler"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise missing_name(globals(), name)


show_callers(globals())
