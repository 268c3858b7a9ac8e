"""Compare GT's gradients with PyTorch's."""

from dataclasses import dataclass

import gt
import torch
from compare import Different, Tolerance, close, compare
from convert import ToGt, tensor_to_gt, tensor_to_torch, tensors_in
from reasons import said


def check_gradients(
    got, want, convert: ToGt, tolerance: Tolerance, values: bool = True, second: bool = False
) -> None:
    """Compare the gradients of all inputs, for random gradients of the results.

    Without `values`, only their presence, shapes and dtypes are compared. With `second`, also the
    gradients of these gradients, with respect to the inputs and to the random gradients.
    """
    with said("gradients"):
        pairs = convert.needing_grad()
        first = _compare_backward(got, want, pairs, tolerance, values, create_graph=second)
    if second and first:
        with said("second gradients"):
            inputs = pairs + first.drawn
            _compare_backward(first.got, first.want, inputs, tolerance, values, constant=True)


@dataclass
class _Backward:
    """Gradients in GT and PyTorch, and the random gradients of results they were computed from."""

    got: list[gt.Tensor]
    want: list[torch.Tensor]
    drawn: list[tuple[torch.Tensor, gt.Tensor]]


def _compare_backward(
    got,
    want,
    inputs,
    tolerance: Tolerance,
    values: bool,
    create_graph: bool = False,
    constant: bool = False,
) -> _Backward | None:
    """Draw gradients of results, and compare those of the inputs; None if PyTorch has none.

    With `constant`, GT's results need not require gradients if PyTorch's gradients are zeros.
    """
    got, want = tensors_in(got, gt.Tensor), tensors_in(want)
    results = [pair for pair in zip(got, want, strict=True) if pair[1].requires_grad]
    drawn = [_draw(result).requires_grad_(create_graph) for _, result in results]
    expected = _torch_gradients([one for _, one in results], inputs, drawn, create_graph)
    if expected is None:
        return None
    # In PyTorch all results of a function require gradients if one does.
    depending = [
        (one, (at, tensor_to_gt(at)))
        for (one, _), at in zip(results, drawn, strict=True)
        if one.requires_grad
    ]
    if not depending and not constant:
        raise Different("no result requires gradients")
    grads = depending and gt.autograd.grad(
        [result for result, _ in depending],
        [one for _, one in inputs],
        [at for _, (_, at) in depending],
        create_graph=create_graph,
        allow_unused=True,
    )
    grads = grads or [None] * len(inputs)
    for place, (grad, wanted) in enumerate(zip(grads, expected, strict=True)):
        with said(f"of input {place}"):
            _compare_gradients(grad, wanted, inputs[place][0], tolerance, values)
    both = [
        pair for pair in zip(grads, expected, strict=True) if not any(one is None for one in pair)
    ]
    return _Backward(
        [one for one, _ in both], [one for _, one in both], [pair for _, pair in depending]
    )


def _torch_gradients(results, inputs, drawn, create_graph: bool):
    """Return PyTorch's gradients, or None if it has none."""
    if not results:
        return None
    try:
        return torch.autograd.grad(
            results,
            [one for one, _ in inputs],
            drawn,
            create_graph=create_graph,
            allow_unused=True,
        )
    except Exception:
        return None


def _compare_gradients(
    grad, wanted, given: torch.Tensor, tolerance: Tolerance, values: bool
) -> None:
    """Compare one gradient; None is equal to zeros."""
    if grad is None and (wanted is None or not values):
        return
    if grad is None or wanted is None:
        zeros = torch.zeros_like(given)
        one, other = (zeros if g is None else g for g in (grad, wanted))
        one = tensor_to_torch(one) if isinstance(one, gt.Tensor) else one
        close(one, other, tolerance)
    else:
        compare(grad, wanted, tolerance, values)


def _draw(result: torch.Tensor) -> torch.Tensor:
    """Return a random gradient of a result."""
    generator = torch.Generator().manual_seed(result.numel())
    return torch.randn(result.shape, dtype=result.dtype, generator=generator)
