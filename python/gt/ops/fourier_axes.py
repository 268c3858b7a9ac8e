"""Discrete Fourier transforms along several axes, computed one after the other."""

from __future__ import annotations

import math

import gt
from gt._gt import Tensor, primitives
from gt.ops.annotations import Dims
from gt.ops.fourier import FFT, as_complex, as_real, complex_to_real, fitted, scale
from gt.ops.registry import function
from gt.ops.sizes import axis_of, ints

_TWO = (-2, -1)


def _axes(name: str, input: Tensor, s: Dims, dim: Dims) -> tuple[list[int], list[int | None]]:
    """Return the axes, and the length for each; None where it keeps its own."""
    sizes = None if s is None else list(ints(s))
    if dim is None:
        count = input.ndim if sizes is None else len(sizes)
        if count > input.ndim:
            raise ValueError(f"{name}: s has {count} lengths, the tensor {input.ndim} axes")
        axes = list(range(input.ndim - count, input.ndim))
    else:
        axes = [axis_of(name, one, input.ndim) for one in ints(dim)]
    if len(set(axes)) < len(axes):
        raise ValueError(f"{name}: dim {dim} names an axis twice")
    if sizes is not None and len(sizes) != len(axes):
        raise ValueError(f"{name}: s has {len(sizes)} lengths for {len(axes)} axes")
    if sizes is None:
        return axes, [None] * len(axes)
    return axes, [None if n == -1 else n for n in sizes]


def _fitted(name: str, input: Tensor, axes: list[int], lengths: list[int | None]) -> Tensor:
    for axis, length in zip(axes, lengths, strict=True):
        input = fitted(name, input, length, axis)
    return input


def _c2c(name: str, x: Tensor, axes: list[int], inverse: bool, factor: float) -> Tensor:
    """Transform along axes; the last transform also multiplies by the factor."""
    for axis in reversed(axes):
        x = primitives._fft_c2c(x, axis, inverse, factor if axis == axes[0] else 1.0)
    return x


def _whole(name: str, input: Tensor, s: Dims, dim: Dims, norm: str | None, inverse: bool) -> Tensor:
    axes, lengths = _axes(name, input, s, dim)
    x = _fitted(name, as_complex(name, input), axes, lengths)
    factor = scale(name, norm, math.prod(x.shape[axis] for axis in axes), inverse)
    return _c2c(name, x, axes, inverse, factor)


def _real_first(
    name: str, input: Tensor, s: Dims, dim: Dims, norm: str | None, inverse: bool
) -> Tensor:
    """Transform real numbers: the last axis to its half spectrum, the others fully."""
    x = as_real(name, input)
    axes, lengths = _axes(name, x, s, dim)
    if not axes:
        raise ValueError(f"{name}: expected at least one axis")
    x = _fitted(name, x, axes, lengths)
    factor = scale(name, norm, math.prod(x.shape[axis] for axis in axes), inverse)
    x = primitives._fft_r2c(x, axes[-1], factor)
    return _c2c(name, gt.conj(x) if inverse else x, axes[:-1], inverse, 1.0)


def _real_last(
    name: str, input: Tensor, s: Dims, dim: Dims, norm: str | None, inverse: bool
) -> Tensor:
    """Transform to real numbers: the last axis from its half spectrum, the others fully."""
    x = as_complex(name, input)
    axes, lengths = _axes(name, x, s, dim)
    if not axes:
        raise ValueError(f"{name}: expected at least one axis")
    x = _fitted(name, x, axes[:-1], lengths[:-1])
    others = math.prod(x.shape[axis] for axis in axes[:-1])
    x = _c2c(name, x, axes[:-1], inverse, 1.0)
    x = x if inverse else gt.conj(x)
    return complex_to_real(name, x, lengths[-1], axes[-1], norm, inverse, others)


@function(namespace=FFT)
def fftn(input: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """Return the Fourier transform along several axes.

    Args:
        input: a tensor of complex or real numbers.
        s: the length along each axis, to which it is cut or padded with zeros.
        dim: the axes; by default as many of the last ones as `s` has lengths, or all.
        norm: "backward" (the default), "ortho" or "forward", as for `fft`.

    >>> gt.fft.fftn(gt.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _whole("fftn", input, s, dim, norm, False)


@function(namespace=FFT)
def ifftn(input: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """Return the inverse of `fftn`; same parameters.

    >>> gt.fft.ifftn(gt.fft.fftn(gt.ones(2, 2))).real
    tensor([[1., 1.],
            [1., 1.]], dtype=float32)
    """
    return _whole("ifftn", input, s, dim, norm, True)


@function(namespace=FFT)
def rfftn(input: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """Return the transform of real numbers, with half of the last axis; parameters as for `fftn`.

    >>> gt.fft.rfftn(gt.ones(2, 3)).shape
    (2, 2)
    """
    return _real_first("rfftn", input, s, dim, norm, False)


@function(namespace=FFT)
def irfftn(input: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """Return the inverse of `rfftn`; as for `fftn`, and the last length in `s` is the result's.

    >>> gt.fft.irfftn(gt.fft.rfftn(gt.ones(2, 2)))
    tensor([[1., 1.],
            [1., 1.]], dtype=float32)
    """
    return _real_last("irfftn", input, s, dim, norm, True)


@function(namespace=FFT)
def hfftn(input: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """Return the transform of a signal whose last half is the conjugate of the first.

    It goes along several axes; parameters as for `irfftn`.

    >>> gt.fft.hfftn(gt.ones(2, 2))
    tensor([[4., 0.],
            [0., 0.]], dtype=float32)
    """
    return _real_last("hfftn", input, s, dim, norm, False)


@function(namespace=FFT)
def ihfftn(input: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """Return the inverse of `hfftn`; parameters as for `fftn`.

    >>> gt.fft.ihfftn(gt.ones(2, 3)).shape
    (2, 2)
    """
    return _real_first("ihfftn", input, s, dim, norm, True)


@function(namespace=FFT)
def fft2(input: Tensor, s: Dims = None, dim: Dims = _TWO, norm: str | None = None) -> Tensor:
    """Return the Fourier transform along two axes; parameters as for `fftn`.

    >>> gt.fft.fft2(gt.ones(1, 2))
    tensor([[2.+0.j, 0.+0.j]], dtype=complex64)
    """
    return fftn(input, s, dim, norm)


@function(namespace=FFT)
def ifft2(input: Tensor, s: Dims = None, dim: Dims = _TWO, norm: str | None = None) -> Tensor:
    """Return the inverse of `fft2`; parameters as for `fftn`.

    >>> gt.fft.ifft2(gt.tensor([[2.0, 0.0]]))
    tensor([[1.+0.j, 1.+0.j]], dtype=complex64)
    """
    return ifftn(input, s, dim, norm)


@function(namespace=FFT)
def rfft2(input: Tensor, s: Dims = None, dim: Dims = _TWO, norm: str | None = None) -> Tensor:
    """Return the transform of real numbers along two axes, with half of the last; as `rfftn`.

    >>> gt.fft.rfft2(gt.ones(2, 3)).shape
    (2, 2)
    """
    return rfftn(input, s, dim, norm)


@function(namespace=FFT)
def irfft2(input: Tensor, s: Dims = None, dim: Dims = _TWO, norm: str | None = None) -> Tensor:
    """Return the inverse of `rfft2`; parameters as for `irfftn`.

    >>> gt.fft.irfft2(gt.fft.rfft2(gt.ones(1, 2)))
    tensor([[1., 1.]], dtype=float32)
    """
    return irfftn(input, s, dim, norm)


@function(namespace=FFT)
def hfft2(input: Tensor, s: Dims = None, dim: Dims = _TWO, norm: str | None = None) -> Tensor:
    """Return `hfftn` along two axes; same parameters.

    >>> gt.fft.hfft2(gt.ones(1, 2))
    tensor([[2., 0.]], dtype=float32)
    """
    return hfftn(input, s, dim, norm)


@function(namespace=FFT)
def ihfft2(input: Tensor, s: Dims = None, dim: Dims = _TWO, norm: str | None = None) -> Tensor:
    """Return the inverse of `hfft2`; parameters as for `fftn`.

    >>> gt.fft.ihfft2(gt.ones(2, 3)).shape
    (2, 2)
    """
    return ihfftn(input, s, dim, norm)
