"""Ranges of numbers, and identity matrices."""

from __future__ import annotations

import math

import torch

import gt
from gt._gt import torch_device
from gt.torch import dtypes
from gt.torch.kernels import memory, raw
from gt.torch.kernels.creation import check_device, check_layout


def store(out, values):
    """Write values to an `out` tensor in its dtype, and return it."""
    if tuple(out.shape) != values.shape:
        memory.resize_out(out, values.shape)
    torch_device.write(out, values.to(dtypes.to_gt(out.dtype)), "range")
    return out


def _steps(dtype, count, start, step):
    """Return `count` numbers from `start` in steps; for integer dtypes both are truncated."""
    if dtype.is_floating_point or dtype.is_complex:
        return gt.arange(count, dtype=gt.float64) * step + start
    return gt.arange(count, dtype=gt.int64) * int(step) + int(start)


def _count(start, end, step):
    """Return the number of elements of the half-open range from start to end."""
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not all(math.isfinite(of) for of in (start, end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) / step < 0:
        raise RuntimeError(
            f"upper bound and lower bound inconsistent with step sign: no steps of {step} lead "
            f"from {start} to {end}"
        )
    if _is_whole(start, end, step):
        return -((start - end) // step)
    return math.ceil((end - start) / step)


def _is_whole(*numbers):
    return all(isinstance(of, int) for of in numbers)


@raw("arange.start_out")
def arange_out(start, end, step=1, *, out):
    return store(out, _steps(out.dtype, _count(start, end, step), start, step))


@raw("arange.start", "arange.start_step")
def arange(start, end, step=1, *, dtype=None, layout=None, device=None, pin_memory=None):
    check_layout(layout)
    check_device(device)
    if dtype is None:
        dtype = torch.int64 if _is_whole(start, end, step) else torch.get_default_dtype()
    if dtype == torch.bool:
        raise NotImplementedError("arange has no steps of torch.bool")
    steps = _steps(dtype, _count(start, end, step), start, step)
    return torch_device.wrap(steps.to(dtypes.to_gt(dtype)))


@raw("arange")
def arange_from_0(end, **options):
    return arange(0, end, **options)


@raw("range.out")
def range_(start, end, step=1, *, out):
    if step == 0 or (end - start) / step < 0:
        raise RuntimeError(f"range: no steps of {step} lead from {start} to {end}")
    return store(out, _steps(out.dtype, math.floor((end - start) / step) + 1, start, step))


@raw("linspace.out")
def linspace(start, end, steps, *, out):
    _check_steps(steps)
    return store(out, gt.linspace(start, end, steps, dtype=dtypes.to_gt(out.dtype)))


@raw("logspace.out")
def logspace(start, end, steps, base=10.0, *, out):
    _check_steps(steps)
    return store(out, gt.logspace(start, end, steps, base, dtype=dtypes.to_gt(out.dtype)))


def _check_steps(steps):
    if steps < 0:
        raise RuntimeError(f"number of steps must be non-negative, not {steps}")


@raw("eye.out")
def eye(n, *, out):
    return eye_of(n, n, out=out)


@raw("eye.m_out")
def eye_of(n, m, *, out):
    if n < 0 or m < 0:
        raise RuntimeError(
            f"eye: the numbers of rows and columns must be 0 or more, not {n} and {m}"
        )
    return store(out, gt.eye(n, m, dtype=dtypes.to_gt(out.dtype)))
