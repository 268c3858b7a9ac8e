"""Ranges of numbers and matrices that follow from sizes: PyTorch makes them by their `out` form."""

from __future__ import annotations

import gt
from gt.torch.kernels import kernel


@kernel("arange.start_out")
def arange(start, end, step=1):
    return gt.arange(start, end, step)


@kernel("range.out")
def range_(start, end, step=1):
    return gt.range(start, end, step)


@kernel("linspace.out")
def linspace(start, end, steps):
    return gt.linspace(start, end, steps)


@kernel("logspace.out")
def logspace(start, end, steps, base=10.0):
    return gt.logspace(start, end, steps, base)


@kernel("eye.out", "eye.m_out")
def eye(n, m=None):
    return gt.eye(n, n if m is None else m)
