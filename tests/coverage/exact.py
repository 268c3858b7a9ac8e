"""Compare GT's rounding errors with PyTorch's, where both round differently.

Sums of large terms that cancel have relative errors far above the dtype's precision: two orders of
summation lead to two results, neither of them better. PyTorch's result in float64 shows the error
of each.
"""

import gt
import torch
from convert import tensor_to_torch, tensors_in, walk

WIDER = {torch.float32: torch.float64, torch.complex64: torch.complex128}

# GT's largest error may be `FACTOR` times PyTorch's largest error, but at most `ROUNDING` times the
# largest value: beyond that, PyTorch's own result is meaningless.
FACTOR = 4
ROUNDING = 32 * torch.finfo(torch.float32).eps


def as_exact(got, want, function, given) -> bool:
    """Return whether GT's results are about as close to those in float64 as PyTorch's are.

    Args:
        got: GT's results, with the shapes and dtypes of `want`.
        want: PyTorch's results.
        function: PyTorch's operation.
        given: its arguments, as a tuple of input, arguments and keywords.
    """
    input, args, kwargs = walk(given, _widened)
    try:
        exact = function(input, *args, **kwargs)
    except Exception:
        return False
    results = [tensors_in(got, gt.Tensor), tensors_in(want), tensors_in(exact)]
    if not results[0] or len({len(each) for each in results}) != 1:
        return False
    results[0] = [tensor_to_torch(each) for each in results[0]]
    return all(_near(*each) for each in zip(*results, strict=True))


def _widened(value):
    if isinstance(value, torch.Tensor):
        return value.detach().to(WIDER.get(value.dtype, value.dtype))
    return WIDER.get(value, value) if isinstance(value, torch.dtype) else value


def _near(got: torch.Tensor, want: torch.Tensor, exact: torch.Tensor) -> bool:
    """Return whether GT's largest error is within the limits given PyTorch's largest error."""
    if got.dtype != want.dtype or not (got.shape == want.shape == exact.shape):
        return False
    if exact.dtype != WIDER.get(want.dtype) or not want.numel():
        return torch.equal(got, want)
    errors = [(each.detach().to(exact.dtype) - exact).abs().max() for each in (got, want)]
    allowed = torch.minimum(FACTOR * errors[1], ROUNDING * exact.abs().max())
    return bool(errors[0] <= allowed)
