"""Resampling of images to another size, by nearest pixels or by weighted sums."""

from __future__ import annotations

import functools
import math
from typing import Any

import gt
from gt._gt import Tensor, arange_beside
from gt.ops.adaptive_pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from gt.ops.annotations import Size
from gt.ops.registry import function
from gt.ops.sliding import along, over, wide

NN = "gt.nn.functional"
#: The number of spatial axes that a mode is for; None for any.
_MODES = {
    "nearest": None,
    "nearest-exact": None,
    "area": None,
    "linear": 1,
    "bilinear": 2,
    "trilinear": 3,
    "bicubic": 2,
    "lanczos": 2,
}


@function(namespace=NN)
def interpolate(
    input: Tensor,
    size: Size | None = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resample a signal, image or volume to another size.

    Args:
        input: (batch, channels, width), (batch, channels, height, width) or with depth before.
        size: the lengths of the spatial axes.
        scale_factor: the factors of these lengths, instead of `size`.
        mode: "nearest" (as in OpenCV), "nearest-exact" (as in Pillow), "area" (averages),
            "linear", "bilinear" or "trilinear" by the number of axes, "bicubic", or "lanczos".
        align_corners: whether to align the centers of the corner pixels, rather than their
            corners; not for the first three modes.
        recompute_scale_factor: whether to compute distances from the lengths, not from
            `scale_factor`.
        antialias: whether a smaller image sums over more pixels, as in Pillow.

    >>> gt.nn.functional.interpolate(gt.tensor([[[0.0, 1.0]]]), scale_factor=2, mode="linear")
    tensor([[[0.  , 0.25, 0.75, 1.  ]]], dtype=float32)
    """
    axes = input.ndim - 2
    _check_mode(input, mode, align_corners, antialias)
    size, factors = _target(input, axes, size, scale_factor)
    if recompute_scale_factor and factors is None:
        raise ValueError("interpolate: recompute_scale_factor needs scale_factor, not size")
    if mode == "area":
        average = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[axes - 1]
        return average(input, size)
    factors = None if recompute_scale_factor else factors
    return resampled(input, size, mode, bool(align_corners), factors, antialias)


def _check_mode(input: Tensor, mode: str, align_corners: bool | None, antialias: bool) -> None:
    """Raise if a mode does not support these axes or options."""
    axes = input.ndim - 2
    if mode not in _MODES:
        raise ValueError(f"interpolate: mode is '{mode}', expected one of {', '.join(_MODES)}")
    if axes not in (1, 2, 3) or _MODES[mode] not in (None, axes):
        expected = f"{_MODES[mode] or '1 to 3'} spatial axes after batch and channels"
        raise ValueError(
            f"interpolate: input has shape {input.shape}, expected {expected} for mode '{mode}'"
        )
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise ValueError(f"interpolate: align_corners is not supported for mode '{mode}'")
    if antialias and mode not in ("bilinear", "bicubic", "lanczos"):
        raise ValueError(f"interpolate: antialias is not supported for mode '{mode}'")
    if mode == "lanczos" and (align_corners or not antialias):
        raise ValueError("interpolate: mode 'lanczos' needs antialias=True, and no align_corners")


def _target(input: Tensor, axes: int, size: Any, scale_factor: Any) -> tuple[Any, Any]:
    """Return the lengths of the spatial axes, and their factors if these are given."""
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: give either size or scale_factor")
    given = scale_factor if size is None else size
    given = list(given) if isinstance(given, tuple | list) else [given] * axes
    if len(given) != axes:
        raise ValueError(
            f"interpolate: {given} is given for {axes} spatial axes of shape {input.shape}"
        )
    if size is not None:
        return [int(length) for length in given], None
    lengths = input.shape[2:]
    return [int(n * factor) for n, factor in zip(lengths, given, strict=True)], given


def resampled(
    input: Tensor, size: Any, mode: str, align: bool, factors: Any = None, antialias: bool = False
) -> Tensor:
    """Resample one axis after the other."""
    axes = len(size)
    if min(size) < 1 or min(input.shape[-axes:]) < 1:
        raise ValueError(
            f"interpolate: input of shape {input.shape} and size {size}, expected lengths above 0"
        )
    if mode.startswith("nearest"):
        for axis in range(-axes, 0):
            at = _nearest(input, input.shape[axis], size[axis], factors and factors[axis], mode)
            input = input.index_select(axis, at)
        return input
    if not input.dtype.is_floating_point and input.dtype != gt.uint8:
        raise TypeError(f"interpolate: mode '{mode}' takes floats or uint8, not {input.dtype.name}")
    whole = not input.dtype.is_floating_point
    result = input.float() if whole else wide(input)
    taps: Any = _cubic if mode == "bicubic" else _linear
    if antialias:
        taps = functools.partial(_antialiased, *_FILTERS[mode])
    for axis in reversed(range(-axes, 0)):
        length, number = input.shape[axis], size[axis]
        if length == number and (mode != "bicubic" or antialias or whole):
            continue  # as PyTorch on a CPU, whatever the factor is
        step = _step(length, number, align, factors and factors[axis])
        at, weight = taps(result, length, number, step, align)
        result = (along(result, axis, at) * over(weight, axis)).sum(axis - 1)
        result = (result + 0.5).floor().clamp(0, 255) if whole else result
    return (result.clone() if result is input else result)._cast(input.dtype)


def _step(length: int, number: int, align: bool, factor: float | None) -> float:
    """Return the distance, in pixels of the input, from one pixel of the output to the next."""
    if align:
        return (length - 1) / (number - 1) if number > 1 else 0.0
    return 1 / factor if factor else length / number


def _nearest(beside: Tensor, length: int, number: int, factor: float | None, mode: str) -> Tensor:
    """Return the input pixel at the beginning of each output pixel, or at its center if exact."""
    each = arange_beside(beside, number)._cast(gt.float32)
    begin = each + 0.5 if mode == "nearest-exact" else each
    return (begin * _step(length, number, False, factor)).floor().long().clamp(max=length - 1)


def _whole(beside: Tensor, number: int) -> Tensor:
    """Return the numbers 0, 1, ... in the dtype of the computation."""
    return arange_beside(beside, number)._cast(beside.dtype)


def _source(beside: Tensor, number: int, step: float, align: bool) -> Tensor:
    """Return the positions of the centers of output pixels in the input."""
    each = _whole(beside, number)
    return each * step if align else (each + 0.5) * step - 0.5


def _linear(
    beside: Tensor, length: int, number: int, step: float, align: bool
) -> tuple[Tensor, Tensor]:
    """Return the two pixels around each center, and their weights."""
    source = _source(beside, number, step, align).clamp(min=0)
    first = source.floor().clamp(max=length - 1)
    share = (source - first).clamp(0, 1)
    at = gt.stack([first, (first + 1).clamp(max=length - 1)]).long()
    return at, gt.stack([1 - share, share])


def _cubic(
    beside: Tensor, length: int, number: int, step: float, align: bool
) -> tuple[Tensor, Tensor]:
    """Return the four pixels around each center, and their weights (Keys, 1981)."""
    source = _source(beside, number, step, align)
    around = arange_beside(beside, 4).unsqueeze(-1) - 1
    at = source.floor() + around
    return at.long().clamp(0, length - 1), cubic(source - at, -0.75)


def cubic(x: Tensor, a: float) -> Tensor:
    """Return the kernel of cubic convolution: cubic pieces, 0 from a distance of 2 on."""
    x = x.abs()
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return gt.where(x < 1, near, gt.where(x < 2, far, 0))


def _antialiased(
    reach: int, filter: Any, beside: Tensor, length: int, number: int, step: float, align: bool
) -> tuple[Tensor, Tensor]:
    """Return the pixels within a filter's reach of each center, and weights whose sum is 1."""
    stretch = max(step, 1.0)
    support = reach * stretch
    center = (_whole(beside, number) + 0.5) * step
    begin = (center - support + 0.5).long().clamp(min=0)
    end = (center + support + 0.5).long().clamp(max=length)
    at = begin + arange_beside(beside, 2 * math.ceil(support) + 1).unsqueeze(-1)
    weight = gt.where(at < end, filter((at - center + 0.5) * (1 / stretch)), 0)
    return at.clamp(max=length - 1), weight / weight.sum(0)


def _triangle(x: Tensor) -> Tensor:
    return (1 - x.abs()).clamp(min=0)


def _lanczos(x: Tensor) -> Tensor:
    """Return sinc(x) sinc(x / 3) within a distance of 3."""
    return gt.where(x.abs() < 3, gt.sinc(x) * gt.sinc(x / 3), 0)


#: The reach of each filter, and the filter. Pillow's cubic filter has another constant.
_FILTERS = {
    "bilinear": (1, _triangle),
    "bicubic": (2, functools.partial(cubic, a=-0.5)),
    "lanczos": (3, _lanczos),
}


@function(namespace=NN)
def upsample(
    input: Tensor,
    size: Size | None = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Compute `interpolate`, which replaces this function.

    >>> gt.nn.functional.upsample(gt.ones(1, 1, 2, 2), scale_factor=2).shape
    (1, 1, 4, 4)
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


@function(namespace=NN)
def upsample_nearest(input: Tensor, size: Size | None = None, scale_factor: Any = None) -> Tensor:
    """Compute `interpolate`, which replaces this function, with the mode "nearest".

    >>> gt.nn.functional.upsample_nearest(gt.ones(1, 1, 2, 2), scale_factor=2).shape
    (1, 1, 4, 4)
    """
    return interpolate(input, size, scale_factor, "nearest")


@function(namespace=NN)
def upsample_bilinear(input: Tensor, size: Size | None = None, scale_factor: Any = None) -> Tensor:
    """Compute `interpolate`, which replaces this, with "bilinear" and `align_corners`.

    >>> gt.nn.functional.upsample_bilinear(gt.ones(1, 1, 2, 2), scale_factor=2).shape
    (1, 1, 4, 4)
    """
    return interpolate(input, size, scale_factor, "bilinear", True)


@function
def _upsample_bilinear2d_aa(
    input: Tensor,
    output_size: Size | None,
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
    scale_factors: Any = None,
) -> Tensor:
    """Compute `interpolate` with the mode "bilinear" and `antialias`.

    The factors may be given with `output_size` (`scales_h`, `scales_w`), or instead of it
    (`scale_factors`).

    >>> gt._upsample_bilinear2d_aa(gt.ones(1, 1, 4, 4), (2, 2), False).shape
    (1, 1, 2, 2)
    """
    if output_size is None:
        output_size, (scales_h, scales_w) = _target(input, 2, None, scale_factors)
    factors = scales_h, scales_w
    return resampled(input, output_size, "bilinear", align_corners, factors, antialias=True)
