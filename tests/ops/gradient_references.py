"""NumPy references of normalization, and of gradients that are primitives."""

import math

import numpy as np

erf = np.vectorize(math.erf, otypes=[float])


def standardized(x, axes, eps):
    over = tuple(range(-axes, 0))
    scale = 1 / np.sqrt(x.var(over, keepdims=True) + eps)
    return (x - x.mean(over, keepdims=True)) * scale, scale


def layer_norm(x, weight, bias, axes, eps):
    return standardized(x, axes, eps)[0] * weight + bias


def layer_norm_backward(grad, x, weight, axes, eps):
    normal, scale = standardized(x, axes, eps)
    scaled, over = grad * weight, tuple(range(-axes, 0))
    share = (scaled * normal).mean(over, keepdims=True)
    return scale * (scaled - scaled.mean(over, keepdims=True) - normal * share)


def layer_norm_weight_backward(grad, x, axes, eps):
    return (grad * standardized(x, axes, eps)[0]).sum(tuple(range(x.ndim - axes)))


def weight_backward(x, grad):
    return x.reshape(-1, x.shape[-1]).T @ grad.reshape(-1, grad.shape[-1])


def gelu_slope(x, approximate):
    if approximate == "none":
        density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
        return 0.5 * (1 + erf(x / math.sqrt(2))) + x * density
    scale, cube = math.sqrt(2 / math.pi), 0.044715
    tanh = np.tanh(scale * (x + cube * x**3))
    return 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh**2) * scale * (1 + 3 * cube * x**2)
