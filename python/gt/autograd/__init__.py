"""Recording for gradients, on and off, gradients of one tensor with respect to others, and
functions with gradients of their own.
"""

import functools
import inspect
from collections.abc import Sequence

from gt import _gt
from gt._gt import Tensor, is_grad_enabled
from gt.autograd.function import Function

__all__ = [
    "Function",
    "enable_grad",
    "grad",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
]


class set_grad_enabled:
    """Turn recording on or off: at once, or for a `with` block or decorated function."""

    def __init__(self, mode: bool):
        self.mode = bool(mode)
        self.previous = [_gt.set_grad_enabled(self.mode)]

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        _gt.set_grad_enabled(self.previous.pop())


class _GradMode:
    mode: bool

    def __new__(cls, function=None):
        """With a function, as `@gt.no_grad`, give that function, decorated."""
        mode = super().__new__(cls)
        mode.previous = []
        return mode if function is None else mode(function)

    def __enter__(self):
        self.previous.append(_gt.set_grad_enabled(self.mode))
        return self

    def __exit__(self, *exception):
        _gt.set_grad_enabled(self.previous.pop())

    def __call__(self, function):
        if inspect.isgeneratorfunction(function):
            return self._generator(function)

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self._again():
                return function(*args, **kwargs)

        return wrapped

    def _again(self):
        """Give another of the same mode, for one call."""
        again = object.__new__(type(self))
        again.mode, again.previous = self.mode, []
        return again

    def _generator(self, function):
        """Decorate a generator: what it does has the mode, what others do between does not."""

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
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
    """Record nothing: `with gt.no_grad():` or `@gt.no_grad()`."""

    mode = False


class inference_mode(_GradMode):
    """Record nothing, as `no_grad`; `inference_mode(False)` changes nothing.

    PyTorch's also forbids later use in what is recorded; here that is no error.
    """

    mode = False

    def __new__(cls, mode=True):
        """With a function, as `@gt.inference_mode`, give that function, decorated."""
        if callable(mode):
            return super().__new__(cls, mode)
        made = super().__new__(cls)
        made.mode = is_grad_enabled() and not mode
        return made


class enable_grad(_GradMode):
    """Record again inside a block that does not."""

    mode = True


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> tuple[Tensor | None, ...]:
    """Give the gradients of a tensor with respect to others, without storing them anywhere.

    Of several outputs, the gradients add up. With `create_graph`, the gradients can be
    differentiated again.
    """
    output, grad_output = _one_output(outputs, grad_outputs)
    inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    retain = create_graph if retain_graph is None else retain_graph
    grads = _gt.grad(output, inputs, grad_output, retain, create_graph)
    if not allow_unused and any(g is None for g in grads):
        position = [g is None for g in grads].index(True)
        raise RuntimeError(
            f"grad: the output does not depend on input {position}\n  hint: allow_unused=True"
        )
    return tuple(grads)


def _one_output(outputs, grad_outputs) -> tuple[Tensor, Tensor | None]:
    """One number whose gradients are those of several outputs together."""
    if isinstance(outputs, Tensor):
        if isinstance(grad_outputs, (list, tuple)):
            (grad_outputs,) = grad_outputs
        return outputs, grad_outputs
    outputs = list(outputs)
    given = [None] * len(outputs) if grad_outputs is None else list(grad_outputs)
    if len(given) != len(outputs):
        raise ValueError(f"grad: {len(given)} grad_outputs for {len(outputs)} outputs")
    if len(outputs) == 1:
        return outputs[0], given[0]
    total = None
    with enable_grad():
        for output, weight in zip(outputs, given, strict=True):
            if weight is None and output.numel() != 1:
                raise RuntimeError(
                    f"grad: an output has shape {output.shape}, and only a single number has a "
                    "gradient by itself\n  hint: give grad_outputs"
                )
            term = (output if weight is None else output * weight.detach().conj()).sum()
            term = term.real if term.dtype.is_complex and weight is not None else term
            total = term if total is None else total + term
    if total is None:
        raise ValueError("grad: no outputs are given")
    return total, None
