"""Sampling of images at grid points, and the grids of affine maps."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple

import gt
from gt._gt import Tensor, arange_beside
from gt.ops.registry import function
from gt.ops.resampling import cubic
from gt.ops.sliding import wide

NN = "gt.nn.functional"
_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


@function(namespace=NN, autocast="widest")
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Return the values of images or volumes at points (Jaderberg et al., 2015).

    Args:
        input: (batch, channels, height, width), or with depth before height.
        grid: the points: (batch, ..., 2) of x and y, or 3 with z, from -1 to 1 over the image.
        mode: "bilinear", "nearest" or "bicubic", also for volumes.
        padding_mode: the values beyond the image: "zeros", its "border", or its "reflection".
        align_corners: whether -1 and 1 are the centers of the corner pixels, not their corners.

    >>> points = gt.tensor([[[[0.0, 0.0], [1.0, 1.0]]]])
    >>> gt.nn.functional.grid_sample(gt.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), points)
    tensor([[[[2.5, 1. ]]]], dtype=float32)
    """
    for parameter, given, known in (
        ("mode", mode, _MODES),
        ("padding_mode", padding_mode, _PADDINGS),
    ):
        if given not in known:
            raise ValueError(f"grid_sample: {parameter} is '{given}', expected one of {known}")
    return _sampled("grid_sample", input, grid, mode, padding_mode, bool(align_corners))


@function(autocast="widest")
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Compute `nn.functional.grid_sample`; the modes are numbers in the order that it lists.

    >>> gt.grid_sampler(gt.ones(1, 1, 2, 2), gt.zeros(1, 1, 1, 2), 0, 0, False)
    tensor([[[[1.]]]], dtype=float32)
    """
    modes = _MODES[interpolation_mode], _PADDINGS[padding_mode]
    return _sampled("grid_sampler", input, grid, *modes, align_corners)


@function
def grid_sampler_2d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Compute `grid_sampler` for images.

    >>> gt.grid_sampler_2d(gt.ones(1, 1, 2, 2), gt.zeros(1, 1, 1, 2), 0, 0, False)
    tensor([[[[1.]]]], dtype=float32)
    """
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@function
def grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Compute `grid_sampler` for volumes.

    >>> gt.grid_sampler_3d(gt.ones(1, 1, 2, 2, 2), gt.zeros(1, 1, 1, 1, 3), 0, 0, False)
    tensor([[[[[1.]]]]], dtype=float32)
    """
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


def _sampled(
    name: str, input: Tensor, grid: Tensor, mode: str, padding: str, align: bool
) -> Tensor:
    """Return the weighted sum of the pixels around each point."""
    axes = input.ndim - 2
    if axes not in (2, 3) or grid.ndim != input.ndim or grid.shape[-1] != axes:
        raise ValueError(
            f"{name}: input has shape {input.shape} and grid {grid.shape}, expected (batch, "
            "channels, height, width) and (batch, ..., 2), or depth before height and 3"
        )
    if input.shape[0] != grid.shape[0] or input.dtype != grid.dtype:
        raise ValueError(
            f"{name}: input is {input.dtype.name} of shape {input.shape} and grid "
            f"{grid.dtype.name} of shape {grid.shape}, expected one dtype and equal batches"
        )
    lengths, points = input.shape[2:], wide(grid).flatten(1, -2)
    taps = [
        _taps(_pixel(points[..., axes - 1 - axis], length, align), length, mode, padding, align)
        for axis, length in enumerate(lengths)
    ]
    at, inside, weight, _ = functools.reduce(_combined, taps)
    index = at.flatten(1).unsqueeze(1).expand(-1, input.shape[1], -1)
    found = wide(input).flatten(2).gather(-1, index).reshape(*input.shape[:2], *at.shape[1:])
    found = gt.where(inside.unsqueeze(1), found, 0) * weight.unsqueeze(1)
    return found.sum(-2).reshape(*input.shape[:2], *grid.shape[1:-1])._cast(input.dtype)


class _Taps(NamedTuple):
    """The pixels around points, [batch, pixel, point]: index, whether inside, and weight."""

    at: Tensor
    inside: Tensor
    weight: Tensor
    length: int


def _combined(outer: _Taps, inner: _Taps) -> _Taps:
    """Combine the pixels along one axis with those along the following axis."""

    def pairs(of: Callable[[Tensor, Tensor], Tensor], one: Tensor, other: Tensor) -> Tensor:
        return of(one.unsqueeze(2), other.unsqueeze(1)).flatten(1, 2)

    return _Taps(
        pairs(operator.add, outer.at * inner.length, inner.at),
        pairs(operator.and_, outer.inside, inner.inside),
        pairs(operator.mul, outer.weight, inner.weight),
        outer.length * inner.length,
    )


def _taps(x: Tensor, length: int, mode: str, padding: str, align: bool) -> _Taps:
    """Return the pixels around positions (in pixels) along an axis, [batch, point]."""
    x = x.unsqueeze(1)
    if mode == "bicubic":
        at = x.floor() + (arange_beside(x, 4).unsqueeze(-1) - 1)
        weight = cubic(x - at, -0.75)
        at = _padded(at, length, padding, align)
    else:
        x = _padded(x, length, padding, align)
        if mode == "nearest":
            at = x.round()
            weight = gt.ones_like(at)
        else:
            first = x.floor()
            at = gt.cat([first, first + 1], 1)
            weight = gt.cat([first + 1 - x, x - first], 1)
    inside = (at >= 0) & (at < length)
    return _Taps(at.long().clamp(0, length - 1), inside, weight, length)


def _pixel(x: Tensor, length: int, align: bool) -> Tensor:
    """Convert positions from -1 to 1 into pixels, where 0 is the center of the first."""
    return (x + 1) * ((length - 1) / 2) if align else ((x + 1) * length - 1) / 2


def _padded(x: Tensor, length: int, padding: str, align: bool) -> Tensor:
    """Map positions beyond the image into it; no gradient flows at or beyond its ends."""
    if padding == "zeros":
        return x
    if padding == "reflection":
        x = _reflected(x, *((0, length - 1) if align else (-0.5, length)))
    return gt.where((x > 0) & (x < length - 1), x, x.detach().clamp(0, length - 1))


def _reflected(x: Tensor, low: float, span: int) -> Tensor:
    """Reflect positions at both ends of a span until they are inside."""
    if span == 0:
        return gt.zeros_like(x)
    distance = gt.where(x < low, low - x, x - low)
    rest, turns = distance % span, (distance / span).floor()
    return low + gt.where(turns % 2 == 0, rest, span - rest)


@function(namespace=NN)
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Return the grid of affine maps for `grid_sample`: theta (x, y, 1) for each pixel.

    Args:
        theta: a matrix for each image, [batch, 2, 3], or [batch, 3, 4] for volumes.
        size: the shape of the images to sample: (batch, channels, height, width), or with depth.
        align_corners: as for `grid_sample`.

    >>> gt.nn.functional.affine_grid(gt.eye(2, 3).unsqueeze(0), (1, 1, 1, 2))
    tensor([[[[-0.5,  0. ],
              [ 0.5,  0. ]]]], dtype=float32)
    """
    return affine_grid_generator(theta, size, bool(align_corners))


@function
def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """Compute `nn.functional.affine_grid`.

    >>> gt.affine_grid_generator(gt.eye(2, 3).unsqueeze(0), (1, 1, 4, 2), False).shape
    (1, 4, 2, 2)
    """
    axes = len(size) - 2
    if axes not in (2, 3) or theta.ndim != 3 or theta.shape[1:] != (axes, axes + 1):
        raise ValueError(
            f"affine_grid: theta has shape {theta.shape} for size {tuple(size)}, expected "
            "(batch, 2, 3) for 4 lengths or (batch, 3, 4) for 5"
        )
    if not theta.dtype.is_floating_point:
        raise TypeError(f"affine_grid: theta must hold floats, this is {theta.dtype.name}")
    if min(size) < 1:
        raise ValueError(f"affine_grid: size is {tuple(size)}, expected lengths above 0")
    matrix, lengths = wide(theta), size[2:]
    centers = [_centers(matrix, length, align_corners) for length in lengths]
    shapes = [
        [length if own == axis else 1 for own in range(axes)] for axis, length in enumerate(lengths)
    ]
    spread = [
        center.reshape(shape).expand(lengths) for center, shape in zip(centers, shapes, strict=True)
    ]
    points = gt.stack([*reversed(spread), gt.ones_like(spread[0])], -1)
    grid = points.reshape(-1, axes + 1) @ matrix.mT
    return grid.reshape(theta.shape[0], *lengths, axes)._cast(theta.dtype)


def _centers(beside: Tensor, length: int, align: bool) -> Tensor:
    """Return the centers of pixels along an axis, as positions from -1 to 1."""
    whole = arange_beside(beside, length)._cast(beside.dtype) * 2 - (length - 1)
    return whole / (max(length - 1, 1) if align else length)
