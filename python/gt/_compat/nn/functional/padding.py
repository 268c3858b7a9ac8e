"""Padding: values beyond the ends of axes."""

from __future__ import annotations

import gt
from gt._gt import Tensor, arange_beside
from gt.ops.annotations import Size
from gt.ops.registry import function
from gt.ops.sizes import ints
from gt.ops.sliding import padded


@function(namespace="gt.nn.functional")
def pad(input: Tensor, pad: Size, mode: str = "constant", value: float | None = None) -> Tensor:
    """Add values beyond the ends of the last axes; negative numbers remove values.

    Args:
        input: the tensor.
        pad: the lengths before and after each axis, the last axis first: (left, right, top,
            bottom, ...).
        mode: "constant"; "reflect" for the mirror image, without repeating the value at the end;
            "replicate" for the value at the end; "circular" for the values from the other end.
        value: the constant, 0 by default.

    >>> gt.nn.functional.pad(gt.tensor([[1.0, 2.0, 3.0]]), (2, 1), mode="reflect")
    tensor([[3., 2., 1., 2., 3., 2.]], dtype=float32)
    """
    pairs = _pairs(input, pad)
    if mode == "constant":
        return gt.constant_pad_nd(input, pad, value or 0)
    if mode not in _SOURCES:
        known = "'constant', 'reflect', 'replicate' or 'circular'"
        raise ValueError(f"pad: mode is '{mode}', expected {known}")
    if value:
        raise ValueError(f"pad: mode '{mode}' takes no value, {value} is given")
    if not 1 <= len(pairs) <= 3 or input.ndim - len(pairs) not in (1, 2):
        raise ValueError(
            f"pad: mode '{mode}' pads the last 1, 2 or 3 axes, with 1 or 2 axes before them, not "
            f"{len(pairs)} axes of shape {input.shape}"
        )
    if mode == "circular":  # values are removed first, then those that remain are repeated
        input = padded(input, [(min(before, 0), min(after, 0)) for before, after in pairs])
        pairs = [(max(before, 0), max(after, 0)) for before, after in pairs]
    for axis, (before, after) in enumerate(pairs, input.ndim - len(pairs)):
        length = input.shape[axis]
        _check_source(mode, length, before, after)
        at = arange_beside(input, length + before + after) - before
        input = input.index_select(axis, _SOURCES[mode](at, length))
    return input


#: The index of the value to use at a position, which may be outside of the axis.
_SOURCES = {
    "reflect": lambda at, length: length - 1 - (length - 1 - at.abs()).abs(),
    "replicate": lambda at, length: at.clamp(0, length - 1),
    "circular": lambda at, length: at % length,
}


def _check_source(mode: str, length: int, before: int, after: int) -> None:
    """Raise if an axis is too short for the values that its padding repeats."""
    most = {"reflect": length - 1, "circular": length}.get(mode)
    if (length == 0 and before + after) or (most is not None and max(before, after) > most):
        raise ValueError(
            f"pad: mode '{mode}' cannot add {before} before and {after} after an axis of length "
            f"{length}" + (f", {most} at most" if most is not None and length else "")
        )


def _pairs(input: Tensor, pad: Size) -> list[tuple[int, int]]:
    """Return the lengths added before and after each of the last axes, in the order of the axes."""
    numbers = ints(pad)
    if len(numbers) % 2 or len(numbers) > 2 * input.ndim:
        raise ValueError(
            f"pad: pad is {numbers}, expected two numbers for each axis that is padded, for "
            f"{input.ndim} axes at most"
        )
    pairs = list(zip(numbers[::2], numbers[1::2], strict=True))[::-1]
    for axis, (before, after) in enumerate(pairs, input.ndim - len(pairs)):
        if input.shape[axis] + before + after < 0:
            raise ValueError(
                f"pad: axis {axis} of length {input.shape[axis]} cannot lose {-before} and {-after}"
            )
    return pairs
