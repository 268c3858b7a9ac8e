"""Discrete Fourier transforms, following `torch.fft`."""

from gt._public import show_callers
from gt.ops.registry import namespace as _namespace

globals().update(_namespace("gt.fft"))

__all__ = sorted(_namespace("gt.fft"))

show_callers(globals())
