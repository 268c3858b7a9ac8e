"""Compare random results of GT with PyTorch's by their distributions."""

import gt
import torch
from compare import Different, compare
from convert import tensor_to_torch, tensors_in

# The number of draws.
TIMES = 40
# The largest difference of two averages, in standard errors.
ERRORS = 6


def is_random(run_torch, tolerance) -> bool:
    """Return whether PyTorch's results depend on the seed."""
    results = []
    for seed in range(3):
        torch.manual_seed(seed)
        results.append(tensors_in(run_torch()))
    first, *others = results
    return any(
        not torch.allclose(a, b, *tolerance.of(a.dtype), equal_nan=True)
        for other in others
        for a, b in zip(first, other, strict=True)
        if a.shape == b.shape
    )


def compare_random(run_gt, run_torch, tolerance) -> None:
    """Raise `Different` unless GT's results match PyTorch's in shape, dtype and distribution.

    The same seed must yield the same numbers twice.
    """
    torch.manual_seed(0)
    want = run_torch()
    gt.manual_seed(0)
    got = run_gt()
    compare(got, want, tolerance, values=False)
    first = [tensor_to_torch(one) for one in tensors_in(got, gt.Tensor)]
    gt.manual_seed(0)
    again = [tensor_to_torch(one) for one in tensors_in(run_gt(), gt.Tensor)]
    for one, other in zip(first, again, strict=True):
        if not torch.equal(one.nan_to_num(), other.nan_to_num()):
            raise Different("the same seed yields other numbers")
    for place, one in enumerate(tensors_in(want)):
        if one.numel():
            _compare_distribution(run_gt, run_torch, place)


def _compare_distribution(run_gt, run_torch, place: int) -> None:
    """Draw `TIMES` times independently, and compare the averages of the draws."""
    want = _draws(lambda: tensors_in(run_torch())[place].detach())
    got = _draws(lambda: tensor_to_torch(tensors_in(run_gt(), gt.Tensor)[place]))
    if got.isfinite().all() != want.isfinite().all():
        raise Different("not the same numbers are finite")
    middle = want.nanmedian()
    width = (want - middle).abs().nanmean()
    if not width.isfinite() or width == 0:
        width = torch.ones(())
    for what, power in (("mean", 1), ("mean square", 2)):
        one, other = ((_bounded((x - middle) / width) ** power).nanmean(1) for x in (got, want))
        error = ((one.var() + other.var()) / TIMES).sqrt().item()
        apart = abs(one.mean() - other.mean()).item()
        if apart > ERRORS * error + 1e-6:
            far = f"{apart / error:.0f} standard errors away" if error else "another"
            raise Different(f"another distribution: the {what} is {far}")


def _draws(run) -> torch.Tensor:
    """Return the numbers of several runs, a row for each."""
    return torch.stack([run().to(torch.float64).flatten() for _ in range(TIMES)])


def _bounded(values: torch.Tensor) -> torch.Tensor:
    """Return values mapped into (-1, 1), so that outliers do not dominate averages.

    Some distributions have no mean.
    """
    return values / (1 + values.abs())
