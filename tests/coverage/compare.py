"""Compare GT's results with PyTorch's."""

import math

import gt
import torch
from convert import dtype_name, tensor_to_torch
from torch.testing._internal.common_device_type import precisionOverride, toleranceOverride

# Relative and absolute tolerances of values. If the database allows more, up to `LENIENT` times as
# much is allowed; the tolerances of gradients are `GRADIENTS` times as large.
TOLERANCE = {
    torch.float16: (2e-3, 2e-3),
    torch.bfloat16: (2e-2, 2e-2),
    torch.float32: (1e-5, 1e-5),
    torch.complex64: (1e-5, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex128: (1e-7, 1e-7),
}
GRADIENTS = 10
LENIENT = 10


class Different(Exception):
    """A result differs from PyTorch's."""


class Tolerance:
    """The tolerances of an entry: the default ones, or what the database allows."""

    def __init__(self, op=None, scale: float = 1.0):
        self.scale = scale
        self.own = {}
        for decorator in _decorators(op) if op else ():
            self._take(decorator)

    def _take(self, decorator) -> None:
        if isinstance(decorator, toleranceOverride):
            for dtype, (atol, rtol) in decorator.d.items():
                self._allow(dtype, rtol, atol)
        elif isinstance(decorator, precisionOverride):
            for dtype, atol in decorator.d.items():
                self._allow(dtype, 0, atol)

    def _allow(self, dtype, rtol: float, atol: float) -> None:
        usual = TOLERANCE.get(dtype, (0, 0))
        known = self.own.get(dtype, usual)
        given = (min(rtol, usual[0] * LENIENT), min(atol, usual[1] * LENIENT))
        self.own[dtype] = (max(known[0], given[0]), max(known[1], given[1]))

    def of(self, dtype: torch.dtype) -> tuple[float, float]:
        """Return the relative and the absolute tolerance of a dtype."""
        rtol, atol = self.own.get(dtype, TOLERANCE.get(dtype, (0, 0)))
        return rtol * self.scale, atol * self.scale

    def for_gradients(self) -> "Tolerance":
        """Return the tolerances of the entry's gradients."""
        made = Tolerance(scale=GRADIENTS)
        made.own = self.own
        return made


def _decorators(op):
    """Yield the decorators of an entry's tests that apply on a CPU."""
    for decorator in op.decorators:
        device = getattr(decorator, "device_type", None)
        if device in (None, "cpu"):
            yield from getattr(decorator, "decorators", [decorator])


def compare(got, want, tolerance: Tolerance, values: bool = True) -> None:
    """Raise `Different` unless GT's result matches PyTorch's: dtypes, shapes and values."""
    if isinstance(want, torch.Tensor):
        _compare_tensors(got, want, tolerance, values)
    elif isinstance(want, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(want):
            raise Different(f"returns {_kind(got)}, PyTorch {_kind(want)}")
        for one, other in zip(got, want, strict=True):
            compare(one, other, tolerance, values)
    elif isinstance(want, torch.dtype):
        if str(got).removeprefix("gt.") != dtype_name(want):
            raise Different(f"returns dtype {got}, PyTorch {want}")
    elif values and not _same(got, want, tolerance):
        raise Different(f"returns {got!r}, PyTorch {want!r}")


def _kind(value) -> str:
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"


def _compare_tensors(got, want: torch.Tensor, tolerance: Tolerance, values: bool) -> None:
    if not isinstance(got, gt.Tensor):
        raise Different(f"returns {_kind(got)}, PyTorch a tensor")
    name = dtype_name(want.dtype)
    if dtype_name(got.dtype) != name:
        raise Different(f"dtype {dtype_name(got.dtype)}, PyTorch returns {name}")
    if tuple(got.shape) != tuple(want.shape):
        raise Different(f"shape {tuple(got.shape)}, PyTorch returns {tuple(want.shape)}")
    if values:
        close(tensor_to_torch(got), want.detach(), tolerance)


def close(got: torch.Tensor, want: torch.Tensor, tolerance: Tolerance) -> None:
    """Raise `Different` unless two PyTorch tensors are equal within the tolerance."""
    rtol, atol = tolerance.of(want.dtype)
    try:
        torch.testing.assert_close(got, want, rtol=rtol, atol=atol, equal_nan=True)
    except AssertionError as error:
        if got.dtype != want.dtype or got.shape != want.shape:
            raise Different(str(error)) from None
        raise Different(_how_far(got, want, rtol, atol)) from None


def _how_far(got: torch.Tensor, want: torch.Tensor, rtol: float, atol: float) -> str:
    """Return a text with the number of different values, the worst one, and the tolerance."""
    wide = torch.complex128 if want.is_complex() else torch.float64
    one, other = got.to(wide).flatten(), want.to(wide).flatten()
    wrong = ~torch.isclose(one, other, rtol=rtol, atol=atol, equal_nan=True)
    apart = (one - other).abs().nan_to_num(torch.inf).where(wrong, -1.0)
    worst = int(apart.argmax())
    text = f"{int(wrong.sum())} of {want.numel()} values differ"
    text += f", the worst {_number(got, worst)}, PyTorch {_number(want, worst)}"
    return text + f" (allowed: {rtol:.0e} of it + {atol:.0e})" if rtol or atol else text


def _number(tensor: torch.Tensor, place: int) -> str:
    return f"{tensor.flatten()[place].item():.6g}"


def _same(got, want, tolerance: Tolerance) -> bool:
    """Return whether two values that are not tensors are equal, floats within the tolerance."""
    if isinstance(want, (float, complex)) and isinstance(got, (int, float, complex)):
        if want != want:
            return got != got
        rtol, atol = tolerance.of(torch.float32)
        return got == want or math.isclose(abs(got - want), 0, abs_tol=atol + rtol * abs(want))
    return type(got) is type(want) and got == want
