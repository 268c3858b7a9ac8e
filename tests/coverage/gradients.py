"""Compare the gradients that GT gives with PyTorch's."""

import gt
import torch
from compare import Different, Tolerance, close, compare
from convert import ToGt, tensor_to_gt, tensor_to_torch, tensors_in
from reasons import said


def check_gradients(got, want, convert: ToGt, tolerance: Tolerance, values: bool = True) -> None:
    """Compare the gradients of all inputs, for drawn gradients of the results.

    Without `values`, only that there are some, of the same shapes and dtypes.
    """
    got, want = tensors_in(got, gt.Tensor), tensors_in(want)
    pairs = [pair for pair in zip(got, want, strict=True) if pair[1].requires_grad]
    inputs = convert.needing_grad()
    drawn = [_draw(result) for _, result in pairs]
    expected = _torch_gradients([result for _, result in pairs], inputs, drawn) if pairs else None
    if expected is None:
        return
    with said("gradients"):
        # PyTorch says of all results of a function that they require gradients, if one does.
        depending = [
            (one, at) for (one, _), at in zip(pairs, drawn, strict=True) if one.requires_grad
        ]
        if not depending:
            raise Different("no result requires gradients")
        grads = gt.autograd.grad(
            [result for result, _ in depending],
            [one for _, one in inputs],
            [tensor_to_gt(one) for _, one in depending],
            allow_unused=True,
        )
    for place, (grad, wanted) in enumerate(zip(grads, expected, strict=True)):
        with said(f"gradient of input {place}"):
            _compare_gradients(grad, wanted, inputs[place][0], tolerance, values)


def _torch_gradients(results, inputs, drawn):
    """Give PyTorch's gradients, or None if it has none."""
    try:
        return torch.autograd.grad(results, [one for one, _ in inputs], drawn, allow_unused=True)
    except Exception:
        return None


def _compare_gradients(
    grad, wanted, given: torch.Tensor, tolerance: Tolerance, values: bool
) -> None:
    """Compare one gradient; none at all is the same as zeros."""
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
    """Draw the gradient of a result."""
    generator = torch.Generator().manual_seed(result.numel())
    return torch.randn(result.shape, dtype=result.dtype, generator=generator)
