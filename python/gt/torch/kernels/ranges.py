"""Ranges of numbers and matrices that follow from sizes: PyTorch makes them by their `out` form."""

from __future__ import annotations

import math

import gt
from gt._gt import torch_device
from gt.torch import dtypes
from gt.torch.kernels import kernel, memory, raw


def _store(out, values):
    """Write values to a tensor, in its dtype."""
    if tuple(out.shape) != values.shape:
        memory.resize_out(out, values.shape)
    torch_device.write(out, values.to(dtypes.to_gt(out.dtype)), "range")
    return out


def _steps(out, count, start, step):
    """Store `start`, `start + step` and so on; whole numbers go on from whole ones."""
    if out.dtype.is_floating_point or out.dtype.is_complex:
        return _store(out, gt.arange(count, dtype=gt.float64) * step + start)
    return _store(out, gt.arange(count, dtype=gt.int64) * int(step) + int(start))


def _count(start, end, step):
    """Give how many steps lead from start up to but without end."""
    if step == 0 or (end - start) / step < 0:
        raise RuntimeError(f"arange: no steps of {step} lead from {start} to {end}")
    if all(isinstance(of, int) for of in (start, end, step)):
        return -((start - end) // step)
    return math.ceil((end - start) / step)


@raw("arange.start_out")
def arange(start, end, step=1, *, out):
    return _steps(out, _count(start, end, step), start, step)


@raw("range.out")
def range_(start, end, step=1, *, out):
    if step == 0 or (end - start) / step < 0:
        raise RuntimeError(f"range: no steps of {step} lead from {start} to {end}")
    return _steps(out, math.floor((end - start) / step) + 1, start, step)


@raw("linspace.out")
def linspace(start, end, steps, *, out):
    return _store(out, _between(out, start, end, steps))


@raw("logspace.out")
def logspace(start, end, steps, base=10.0, *, out):
    return _store(out, gt.pow(base, _between(out, start, end, steps)))


def _between(out, start, end, steps):
    if steps < 0:
        raise RuntimeError(f"number of steps must be non-negative, not {steps}")
    return gt.linspace(start, end, steps, dtype=gt.float64)


@kernel("eye.out", "eye.m_out")
def eye(n, m=None):
    return gt.eye(n, n if m is None else m)
