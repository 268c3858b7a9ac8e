"""Discrete Fourier transforms, as `torch.fft` has it."""

from gt.ops import namespace as _namespace

globals().update(_namespace("gt.fft"))

__all__ = sorted(_namespace("gt.fft"))
