"""Discrete Fourier transforms along one axis, following `torch.fft`."""

from __future__ import annotations

import gt
from gt._gt import Tensor, primitives
from gt.ops.annotations import Dims, DType
from gt.ops.precision import float_dtype
from gt.ops.registry import function
from gt.ops.sizes import axis_of, ints

FFT = "gt.fft"


def scale(name: str, norm: str | None, count: int, inverse: bool) -> float:
    """Return the factor by which the transform of `count` numbers is multiplied."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f"{name}: norm must be 'backward', 'ortho' or 'forward', not {norm!r}")
    if norm == "ortho":
        return count**-0.5
    return 1 / count if inverse == (norm != "forward") else 1.0


def fitted(name: str, input: Tensor, n: int | None, dim: int) -> Tensor:
    """Cut an axis to a length, or pad it with zeros."""
    length = input.shape[axis_of(name, dim, input.ndim)]
    if (length if n is None else n) < 1:
        given = length if n is None else n
        raise ValueError(f"{name}: axis {dim} must have at least one number, not {given}")
    if n is None or n == length:
        return input
    if n < length:
        return input.narrow(dim, 0, n)
    shape = list(input.shape)
    shape[dim] = n - length
    return primitives.cat([input, input.new_zeros(shape)], dim)


def as_complex(name: str, input: Tensor) -> Tensor:
    """Return the values as complex numbers; raise for 16-bit floats."""
    _check_floats(name, input)
    return input if input.dtype.is_complex else input + 0j


def as_real(name: str, input: Tensor) -> Tensor:
    """Return the values as floats; raise for complex numbers and 16-bit floats."""
    if input.dtype.is_complex:
        raise TypeError(f"{name}: expected a real tensor, not {input.dtype.name}")
    _check_floats(name, input)
    return input._cast(float_dtype(input))


def _check_floats(name: str, input: Tensor) -> None:
    if input.dtype in (gt.float16, gt.bfloat16):
        raise TypeError(f"{name}: dtype {input.dtype.name} is not supported\n  hint: input.float()")


def complex_to_real(
    name: str,
    input: Tensor,
    n: int | None,
    dim: int,
    norm: str | None,
    inverse: bool,
    others: int = 1,
) -> Tensor:
    """Return the `n` real numbers whose half spectrum is given, 2 * (m - 1) of m by default.

    `others` is the number of values along the axes that are already transformed.
    """
    n = 2 * (input.shape[axis_of(name, dim, input.ndim)] - 1) if n is None else n
    if n < 1:
        raise ValueError(f"{name}: the result must have at least one number, not {n}")
    factor = scale(name, norm, others * n, inverse)
    return primitives._fft_c2r(fitted(name, input, n // 2 + 1, dim), dim, n, factor)


def _c2c(
    name: str, input: Tensor, n: int | None, dim: int, norm: str | None, inverse: bool
) -> Tensor:
    x = fitted(name, as_complex(name, input), n, dim)
    return primitives._fft_c2c(x, dim, inverse, scale(name, norm, x.shape[dim], inverse))


@function(namespace=FFT)
def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the Fourier transform along an axis: `sum(x[j] * exp(-2j * pi * j * k / n))`.

    Args:
        input: a tensor of complex or real numbers.
        n: the length to which the axis is cut or padded with zeros; its own by default.
        dim: the axis.
        norm: which transform is scaled: "backward" (the default) divides the inverse by n,
            "forward" this one, "ortho" both by the square root of n.

    >>> gt.fft.fft(gt.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j], dtype=complex64)
    """
    return _c2c("fft", input, n, dim, norm, False)


@function(namespace=FFT)
def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the inverse Fourier transform along an axis; parameters as for `fft`.

    >>> gt.fft.ifft(gt.tensor([4.0, 0.0, 0.0, 0.0]))
    tensor([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _c2c("ifft", input, n, dim, norm, True)


@function(namespace=FFT)
def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the Fourier transform of real numbers, its first n // 2 + 1 values; as `fft`.

    The remaining values are the conjugates of these.

    >>> gt.fft.rfft(gt.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
    """
    x = fitted("rfft", as_real("rfft", input), n, dim)
    return primitives._fft_r2c(x, dim, scale("rfft", norm, x.shape[dim], False))


@function(namespace=FFT)
def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the inverse of `rfft`: n real numbers, by default 2 * (m - 1) for m values.

    >>> gt.fft.irfft(gt.fft.rfft(gt.tensor([1.0, 2.0, 3.0, 4.0])))
    tensor([1., 2., 3., 4.], dtype=float32)
    """
    return complex_to_real("irfft", as_complex("irfft", input), n, dim, norm, True)


@function(namespace=FFT)
def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the transform of a signal whose second half is the conjugate of the first.

    The result is n real numbers. Parameters as for `irfft`, whose exponent has the other sign and
    which divides by n.

    >>> gt.fft.hfft(gt.tensor([1.0, 2.0, 3.0]))
    tensor([ 8., -2.,  0., -2.], dtype=float32)
    """
    x = gt.conj(as_complex("hfft", input))
    return complex_to_real("hfft", x, n, dim, norm, False)


@function(namespace=FFT)
def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the inverse of `hfft`; parameters as for `fft`.

    >>> gt.fft.ihfft(gt.tensor([8.0, -2.0, 0.0, -2.0])).real
    tensor([1., 2., 3.], dtype=float32)
    """
    x = fitted("ihfft", as_real("ihfft", input), n, dim)
    return gt.conj(primitives._fft_r2c(x, dim, scale("ihfft", norm, x.shape[dim], True)))


@function(namespace=FFT)
def fftfreq(
    n: int, d: float = 1.0, *, dtype: DType | None = None, requires_grad: bool = False
) -> Tensor:
    """Return the frequencies of a transform of n samples at a distance d, negative ones last.

    >>> gt.fft.fftfreq(4)
    tensor([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    whole = gt.cat([gt.arange((n + 1) // 2), gt.arange(-(n // 2), 0)])
    return (whole._cast(dtype or gt.get_default_dtype()) * (1 / (n * d))).requires_grad_(
        requires_grad
    )


@function(namespace=FFT)
def rfftfreq(
    n: int, d: float = 1.0, *, dtype: DType | None = None, requires_grad: bool = False
) -> Tensor:
    """Return the frequencies of `rfft` of n samples at a distance d.

    >>> gt.fft.rfftfreq(4)
    tensor([0.  , 0.25, 0.5 ], dtype=float32)
    """
    whole = gt.arange(n // 2 + 1)._cast(dtype or gt.get_default_dtype())
    return (whole * (1 / (n * d))).requires_grad_(requires_grad)


@function(namespace=FFT)
def fftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """Move frequency 0 to the middle of the given axes, by default of all.

    >>> gt.fft.fftshift(gt.fft.fftfreq(4))
    tensor([-0.5 , -0.25,  0.  ,  0.25], dtype=float32)
    """
    dims = tuple(range(input.ndim)) if dim is None else ints(dim)
    return gt.roll(input, [input.shape[at] // 2 for at in dims], dims) if dims else input


@function(namespace=FFT)
def ifftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """Undo `fftshift`.

    >>> gt.fft.ifftshift(gt.tensor([-0.5, -0.25, 0.0, 0.25]))
    tensor([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    dims = tuple(range(input.ndim)) if dim is None else ints(dim)
    return gt.roll(input, [(input.shape[at] + 1) // 2 for at in dims], dims) if dims else input
