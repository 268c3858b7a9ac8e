"""Complex numbers: composed of real ones, and taken apart."""

from __future__ import annotations

import math

import gt
from gt._gt import Tensor, primitives
from gt.ops.registry import extend_tensor, function, operation


@function
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """Compose complex numbers of their real and imaginary parts.

    Args:
        real: the real parts, float32 or float64.
        imag: the imaginary parts, of the same dtype; the two broadcast.

    >>> gt.complex(gt.tensor([1.0]), gt.tensor([2.0]))
    tensor([1.+2.j], dtype=complex64)
    """
    if real.dtype != imag.dtype:
        raise TypeError(
            f"complex: both parts must be of one dtype, not {real.dtype.name} and {imag.dtype.name}"
        )
    return primitives.view_as_complex(gt.stack(gt.broadcast_tensors(real, imag), -1))


@function(autocast="float32")
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Compose complex numbers of lengths and angles: `abs * (cos(angle) + i sin(angle))`.

    Args:
        abs: the lengths, float32 or float64.
        angle: the angles in radians, of the same dtype; the two broadcast.

    >>> gt.polar(gt.tensor([2.0]), gt.tensor([0.0]))
    tensor([2.+0.j], dtype=complex64)
    """
    if abs.dtype != angle.dtype:
        raise TypeError(
            f"polar: both parts must be of one dtype, not {abs.dtype.name} and {angle.dtype.name}"
        )
    return complex(abs * gt.cos(angle), abs * gt.sin(angle))


@operation(method=False)
def real(input: Tensor) -> Tensor:
    """Return a view of the real parts; a real tensor is returned itself.

    >>> gt.real(gt.tensor([1 + 2j]))
    tensor([1.], dtype=float32)
    """
    return primitives.view_as_real(input)[..., 0] if input.dtype.is_complex else input


@operation(method=False)
def imag(input: Tensor) -> Tensor:
    """Return a view of the imaginary parts of complex numbers.

    >>> gt.imag(gt.tensor([1 + 2j]))
    tensor([2.], dtype=float32)
    """
    if not input.dtype.is_complex:
        raise TypeError(f"imag: expected a complex dtype, not {input.dtype.name}")
    return primitives.view_as_real(input)[..., 1]


def _set_real(input: Tensor, values: Tensor) -> None:
    real(input).copy_(values)


def _set_imag(input: Tensor, values: Tensor) -> None:
    imag(input).copy_(values)


extend_tensor(
    real=property(real, _set_real, doc=real.__doc__),
    imag=property(imag, _set_imag, doc=imag.__doc__),
)


@operation
def angle(input: Tensor) -> Tensor:
    """Return the angles of complex numbers in radians; for real numbers pi below 0, else 0.

    >>> gt.angle(gt.tensor([1j, -1.0]))
    tensor([1.5707964, 3.1415927], dtype=float32)
    """
    if input.dtype.is_complex:
        at_zero = input == 0
        safe = gt.where(at_zero, 1, input)
        return gt.where(at_zero, 0, gt.atan2(imag(safe), real(safe)))
    wide = input if input.dtype.is_floating_point else input.float()
    return gt.where(gt.isnan(wide), wide, gt.where(wide < 0, math.pi, 0)._cast(wide.dtype))


@operation(in_place=True, aliases=("conj_physical",))
def conj(input: Tensor) -> Tensor:
    """Return the complex conjugates; a real tensor is returned itself.

    >>> gt.conj(gt.tensor([1 + 2j]))
    tensor([1.-2.j], dtype=complex64)
    """
    return primitives.conj(input) if input.dtype.is_complex else input


@operation
def is_conj(input: Tensor) -> bool:
    """Return False: `conj` computes the conjugate at once, so none is pending.

    >>> gt.is_conj(gt.tensor([1j]).conj())
    False
    """
    return False


@operation
def is_neg(input: Tensor) -> bool:
    """Return False: negatives are computed at once, so none is pending.

    >>> gt.is_neg(-gt.ones(1))
    False
    """
    return False


@operation
def resolve_conj(input: Tensor) -> Tensor:
    """Return the tensor itself: no conjugate is pending.

    >>> gt.resolve_conj(gt.tensor([1 + 2j]))
    tensor([1.+2.j], dtype=complex64)
    """
    return input


@operation
def resolve_neg(input: Tensor) -> Tensor:
    """Return the tensor itself: no negative is pending.

    >>> gt.resolve_neg(gt.ones(1))
    tensor([1.], dtype=float32)
    """
    return input
