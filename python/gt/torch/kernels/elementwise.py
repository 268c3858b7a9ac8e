"""Elementwise operators whose names or arguments differ, and their derivatives."""

from __future__ import annotations

import gt
from gt.nn import functional as F
from gt.torch.kernels import kernel
from gt.torch.kernels.tape import vjp_of_first


@kernel("zero")
def zero(self):
    return gt.zeros_like(self)


@kernel("fill")
def fill(self, value):
    if isinstance(value, gt.Tensor):
        return value.to(self.dtype).expand(self.shape)
    return gt.full_like(self, value)


@kernel("__lshift__", "__ilshift__")
def left_shift(self, other):
    return gt.bitwise_left_shift(self, other)


@kernel("__rshift__", "__irshift__")
def right_shift(self, other):
    return gt.bitwise_right_shift(self, other)


def _check_alpha(self, other, alpha):
    whole = all(
        not isinstance(of, gt.Tensor) or not (of.is_floating_point() or of.is_complex())
        for of in (self, other)
    )
    if isinstance(alpha, float) and whole and not isinstance(other, float | complex):
        raise RuntimeError(
            "For integral input tensors, argument alpha must not be a floating point number."
        )


@kernel("add", operation="add")
def add(self, other, *, alpha=1):
    _check_alpha(self, other, alpha)
    return gt.add(self, other, alpha=alpha)


@kernel("sub", operation="sub")
def sub(self, other, *, alpha=1):
    _check_alpha(self, other, alpha)
    return gt.sub(self, other, alpha=alpha)


@kernel("addcdiv", passes_numbers=True)
def addcdiv(self, tensor1, tensor2, *, value=1):
    return gt.addcdiv(self, tensor1, tensor2, value=value)


@kernel("addcmul", passes_numbers=True)
def addcmul(self, tensor1, tensor2, *, value=1):
    tensors = (self, tensor1, tensor2)
    if not any(of.is_floating_point() or of.is_complex() for of in tensors):
        value = int(value)
    return gt.addcmul(self, tensor1, tensor2, value=value)


@kernel("conj_physical.out")
def conj_physical(self):
    return gt.conj(self) if self.is_complex() else self


@kernel("elu")
def elu(self, alpha=1, scale=1, input_scale=1):
    return gt.where(self > 0, self * scale, alpha * scale * gt.expm1(self * input_scale))


@kernel("elu_backward")
def elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result):
    _check_slope("elu", alpha, is_result)
    if is_result:
        below = (self_or_result + alpha * scale) * input_scale
    else:
        below = alpha * scale * input_scale * gt.exp(self_or_result * input_scale)
    return grad_output * gt.where(self_or_result <= 0, below, scale)


@kernel("threshold_backward")
def threshold_backward(grad_output, self, threshold):
    return gt.where(self <= threshold, 0, grad_output)


@kernel("tanh_backward")
def tanh_backward(grad_output, output):
    return grad_output * (1 - output.conj() * output.conj())


@kernel("sigmoid_backward")
def sigmoid_backward(grad_output, output):
    return grad_output * (1 - output.conj()) * output.conj()


@kernel("hardtanh_backward")
def hardtanh_backward(grad_output, self, min_val, max_val):
    return gt.where((self <= min_val) | (self >= max_val), 0, grad_output)


@kernel("leaky_relu_backward")
def leaky_relu_backward(grad_output, self, negative_slope, self_is_result):
    _check_slope("leaky_relu", negative_slope, self_is_result)
    return gt.where(self > 0, grad_output, grad_output * negative_slope)


def _check_slope(name, slope, is_result):
    """Raise if an in-place result does not reveal which values were negative."""
    if is_result and slope < 0:
        raise RuntimeError(
            f"{name}_: with a negative slope ({slope}) the gradient cannot be computed after the "
            f"values were changed in place\n  hint: use {name}"
        )


@kernel("softshrink_backward", "hardshrink_backward")
def shrink_backward(grad_output, self, lambd):
    return gt.where((self >= -lambd) & (self <= lambd), 0, grad_output)


@kernel("softplus_backward")
def softplus_backward(grad_output, self, beta, threshold):
    scaled = self * beta
    return gt.where(scaled > threshold, grad_output, grad_output * gt.sigmoid(scaled))


@kernel("hardsigmoid_backward")
def hardsigmoid_backward(grad_output, self):
    return gt.where((self > -3) & (self < 3), grad_output / 6, 0)


@kernel("hardswish_backward")
def hardswish_backward(grad_output, self):
    inside = grad_output * (self / 3 + 0.5)
    return gt.where(self <= -3, 0, gt.where(self < 3, inside, grad_output))


@kernel("gelu_backward")
def gelu_backward(grad_output, self, *, approximate="none"):
    return vjp_of_first(lambda x: F.gelu(x, approximate=approximate), grad_output, self)


@kernel("silu_backward")
def silu_backward(grad_output, self):
    return vjp_of_first(F.silu, grad_output, self)


@kernel("mish_backward")
def mish_backward(grad_output, self):
    return vjp_of_first(F.mish, grad_output, self)


@kernel("glu_backward")
def glu_backward(grad_output, self, dim):
    return vjp_of_first(lambda x: F.glu(x, dim), grad_output, self)


@kernel("logit_backward")
def logit_backward(grad_output, self, eps=None):
    low, high = (0.0, 1.0) if eps is None else (eps, 1 - eps)
    outside = gt.nan if eps is None else 0.0
    return gt.where((self < low) | (self > high), outside, grad_output / (self * (1 - self)))


@kernel("log_sigmoid_forward")
def log_sigmoid_forward(self):
    return F.logsigmoid(self), gt.exp(-gt.abs(self))


@kernel("log_sigmoid_backward")
def log_sigmoid_backward(grad_output, self, buffer):
    return grad_output * gt.sigmoid(-self)


@kernel("_prelu_kernel")
def prelu(self, weight):
    return gt.where(self > 0, self, self * weight)


@kernel("_prelu_kernel_backward")
def prelu_backward(grad_output, self, weight):
    above = self > 0
    return (
        gt.where(above, grad_output, grad_output * weight),
        gt.where(above, 0, self * grad_output),
    )
