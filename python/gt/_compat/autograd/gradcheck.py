"""Checks of gradients against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import gt
from gt._gt import Tensor
from gt._lines import warn

from . import enable_grad, grad

if TYPE_CHECKING:
    import numpy as np


class GradcheckError(RuntimeError):
    """Gradients differ from finite differences."""

    __module__ = "gt.autograd"


def gradcheck(
    func: Callable[..., Tensor | Sequence[Tensor]],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    fast_mode: bool = False,
) -> bool:
    """Check a function's gradients against central finite differences, element by element.

    A complex number counts as its two parts, in inputs and in outputs.

    Args:
        func: a function of the inputs that returns a tensor or several.
        inputs: the inputs; those that require gradients are checked and should be float64.
        eps: the step of the differences, (f(x + eps) - f(x - eps)) / (2 eps).
        atol: the absolute tolerance.
        rtol: the tolerance relative to the finite difference.
        raise_exception: raise rather than return False.
        nondet_tol: the tolerance between two passes over the same graph.
        check_undefined_grad: has no effect: an output without a gradient is always left out.
        check_grad_dtypes: also check that gradients have the dtypes of their inputs.
        fast_mode: has no effect: all elements are checked, which is the stricter test.

    Raises:
        GradcheckError: they differ.

    >>> x = gt.tensor([0.5, 1.0], dtype=gt.float64, requires_grad=True)
    >>> gt.autograd.gradcheck(gt.sin, x)
    True
    """
    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    wanted = [at for at, each in enumerate(given) if _requires_grad(each)]
    if not wanted:
        raise ValueError("gradcheck: none of the inputs requires gradients")
    for at in wanted:
        if given[at].dtype not in (gt.float64, gt.complex128):
            warn(
                f"gradcheck: input {at} is {given[at].dtype.name}, in which finite differences are "
                "seldom accurate enough; use float64",
            )
    try:
        outputs = _parts(func, given)
        for number, output in enumerate(outputs):
            if output.requires_grad:
                _check(func, given, wanted, number, output, (eps, atol, rtol, nondet_tol))
        if check_grad_dtypes:
            _check_dtypes(outputs, [given[at] for at in wanted])
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Tensor | Sequence[Tensor]],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    fast_mode: bool = False,
) -> bool:
    """Check the gradients of a function's gradients against finite differences.

    Args:
        func: a function of the inputs that returns a tensor or several.
        inputs: the inputs; those that require gradients are checked and should be float64.
        grad_outputs: the gradients of the outputs, which are checked too; random by default.
        eps: this and the remaining arguments as for `gradcheck`.

    >>> x = gt.tensor([0.5, 1.0], dtype=gt.float64, requires_grad=True)
    >>> gt.autograd.gradgradcheck(gt.sin, x)
    True
    """
    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    with enable_grad():
        outputs = [output for output in _as_tuple(func(*given)) if output.requires_grad]
    if grad_outputs is None:
        weights = [gt.randn_like(output).detach().requires_grad_() for output in outputs]
    else:
        weights = list(_as_tuple(grad_outputs))

    def gradients(*both: Tensor) -> tuple[Tensor, ...]:
        own, weights = both[: len(given)], both[len(given) :]
        outputs = [output for output in _as_tuple(func(*own)) if output.requires_grad]
        wanted = [each for each in own if _requires_grad(each)]
        found = grad(outputs, wanted, weights, create_graph=True, allow_unused=True)
        return tuple(each for each in found if each is not None and each.requires_grad)

    return gradcheck(
        gradients,
        (*given, *weights),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        fast_mode=fast_mode,
    )


def _requires_grad(given: Any) -> bool:
    return isinstance(given, Tensor) and given.requires_grad


def _as_tuple(given: Any) -> tuple[Any, ...]:
    return (given,) if isinstance(given, Tensor) else tuple(given)


def _parts(func: Callable[..., Any], given: tuple[Any, ...]) -> list[Tensor]:
    """Return the outputs of a function as real tensors."""
    with enable_grad():
        outputs = [each for each in _as_tuple(func(*given)) if isinstance(each, Tensor)]
        return [gt.view_as_real(each) if each.dtype.is_complex else each for each in outputs]


def _check(
    func: Callable[..., Any],
    given: tuple[Any, ...],
    wanted: list[int],
    number: int,
    output: Tensor,
    bounds: tuple[float, float, float, float],
) -> None:
    """Raise if the gradients of one output differ from finite differences."""
    import numpy as np  # slow to import

    eps, atol, rtol, nondet_tol = bounds
    inputs = [given[at] for at in wanted]
    computed = _rows(output, inputs)
    again = _rows(output, inputs)
    for at, one, other in zip(wanted, computed, again, strict=True):
        if np.abs(one - other).max(initial=0) > nondet_tol:
            raise GradcheckError(
                f"gradcheck: two passes yield gradients of output {number} by input {at} that "
                f"differ by more than nondet_tol={nondet_tol}"
            )
        expected = _differences(func, given, at, number, eps)
        wrong = ~np.isclose(one, expected, rtol=rtol, atol=atol)
        if wrong.any():
            place = tuple(int(each) for each in np.argwhere(wrong)[0])
            raise GradcheckError(
                f"gradcheck: {int(wrong.sum())} of {wrong.size} gradients of output {number} by "
                f"input {at} differ; element {place[0]} of the output by element {place[1]} of the "
                f"input is {one[place]}, by finite differences {expected[place]}"
            )


def _rows(output: Tensor, inputs: list[Tensor]) -> list[np.ndarray]:
    """Return the derivatives of an output's elements by the elements of each input."""
    import numpy as np  # slow to import

    elements, rows = output.reshape(-1), []
    for at in range(output.numel()):
        found = grad(elements[at], inputs, retain_graph=True, allow_unused=True)
        pairs = zip(found, inputs, strict=True)
        rows.append([gt.zeros_like(own) if each is None else each for each, own in pairs])
    return [
        np.stack([row[at].detach().numpy().reshape(-1) for row in rows])
        if rows
        else np.zeros((0, own.numel()))
        for at, own in enumerate(inputs)
    ]


def _differences(
    func: Callable[..., Any], given: tuple[Any, ...], at: int, number: int, eps: float
) -> np.ndarray:
    """Return central differences; those along imaginary parts as an imaginary part."""
    import numpy as np  # slow to import

    values = given[at].detach().numpy()
    directions = (1, 1j) if given[at].dtype.is_complex else (1,)
    columns = []
    for place in range(values.size):
        slopes = [_slope(func, given, at, number, place, step * eps) for step in directions]
        columns.append(sum(s * d for s, d in zip(slopes, directions, strict=True)) / (2 * eps))
    rows = _parts(func, given)[number].numel()
    return np.stack(columns, 1) if columns else np.zeros((rows, 0))


def _slope(
    func: Callable[..., Any],
    given: tuple[Any, ...],
    at: int,
    number: int,
    place: int,
    step: complex,
) -> np.ndarray:
    """Return the difference of an output between a step forward and a step back."""
    ends = []
    for sign in (1, -1):
        values = given[at].detach().numpy()
        values.reshape(-1)[place] += sign * step
        moved = gt.from_numpy(values).requires_grad_()
        output = _parts(func, (*given[:at], moved, *given[at + 1 :]))[number]
        ends.append(output.detach().double().numpy().reshape(-1))
    return ends[0] - ends[1]


def _check_dtypes(outputs: list[Tensor], inputs: list[Tensor]) -> None:
    for output in (each for each in outputs if each.requires_grad):
        found = grad(output.sum(), inputs, retain_graph=True, allow_unused=True)
        for own, each in zip(inputs, found, strict=True):
            if each is not None and each.dtype != own.dtype:
                raise GradcheckError(
                    f"gradcheck: the gradient of an input of {own.dtype.name} is {each.dtype.name}"
                )
