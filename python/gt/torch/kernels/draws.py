"""Random numbers, from the counters of GT's session."""

from __future__ import annotations

import torch

import gt
from gt._gt import torch_device
from gt.distributions._standard_gamma import log_standard_gamma, standard_gamma
from gt.torch import dtypes
from gt.torch.host import drawing_from
from gt.torch.kernels import kernel, raw
from gt.torch.kernels.ranges import store


def _in_place(name, overload=""):
    """Register an operator that fills a tensor, by the GT method of the same name."""

    def fill(self, *given, generator=None, **named):
        source = drawing_from(generator)
        return getattr(gt.zeros_like(self), name)(*given, generator=source, **named)

    kernel(name + overload)(fill)


for _name in ("normal_", "uniform_", "exponential_", "geometric_", "cauchy_", "log_normal_"):
    _in_place(_name)
_in_place("random_")
_in_place("bernoulli_")


@kernel("bernoulli", "bernoulli.out")
def bernoulli(self, *, generator=None):
    return gt.bernoulli(self, generator=drawing_from(generator))


@kernel("bernoulli.p")
def bernoulli_p(self, p, *, generator=None):
    return gt.zeros_like(self).bernoulli_(p, generator=drawing_from(generator))


@kernel("normal.Tensor_float", "normal.float_Tensor", "normal.Tensor_Tensor")
def normal(mean, std=1.0, *, generator=None):
    return gt.normal(mean, std, generator=drawing_from(generator))


@kernel("multinomial")
def multinomial(self, num_samples, replacement=False, *, generator=None):
    return gt.multinomial(self, num_samples, replacement, generator=drawing_from(generator))


@kernel("poisson")
def poisson(self, generator=None):
    return gt.poisson(self, drawing_from(generator))


@kernel("binomial")
def binomial(count, prob, generator=None):
    return gt.binomial(count, prob, drawing_from(generator))


@raw("randperm.generator_out", "randperm.out")
def randperm(n, *, generator=None, out):
    drawn = gt.randperm(n, generator=drawing_from(generator), dtype=dtypes.to_gt(out.dtype))
    return store(out, drawn)


@kernel("_standard_gamma")
def draw_standard_gamma(self, generator=None):
    return standard_gamma(self, drawing_from(generator))


@kernel("_sample_dirichlet")
def sample_dirichlet(self, generator=None):
    # Small concentrations draw values that underflow, whose logarithms do not.
    drawn = gt.softmax(log_standard_gamma(self, drawing_from(generator)), -1)
    limits = gt.finfo(drawn.dtype)
    return drawn.clamp(limits.tiny, 1 - limits.eps / 2)


@kernel("native_dropout")
def native_dropout(input, p, train):
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    if train is False or p == 0:
        return input, gt.ones_like(input, dtype=gt.bool)
    mask = gt.rand_like(input, dtype=gt.float32) >= p
    return gt.where(mask, input * (1 / (1 - p) if p < 1 else 0.0), 0), mask


@kernel("native_dropout_backward")
def native_dropout_backward(grad_output, mask, scale):
    return gt.where(mask, grad_output * scale, 0)


def _rrelu_noise(self, lower, upper, generator):
    drawn = gt.rand(self.shape, dtype=self.dtype, generator=drawing_from(generator))
    noise = drawn * (upper - lower) + lower
    return gt.where(self > 0, 1.0, noise).to(self.dtype)


_noise = torch_device.Kernel("aten::rrelu_with_noise", _rrelu_noise)


@raw("rrelu_with_noise")
def rrelu_with_noise(self, noise, lower=0.125, upper=1 / 3, training=False, generator=None):
    if not training:
        slope = (lower + upper) / 2
        return torch.where(self > 0, self, self * slope)
    noise.copy_(_noise(self, lower, upper, generator))
    return self * noise


@raw("rrelu_with_noise_")
def rrelu_with_noise_(self, *given, **named):
    return self.copy_(rrelu_with_noise(self, *given, **named))


@kernel("rrelu_with_noise_backward")
def rrelu_with_noise_backward(grad_output, self, noise, lower, upper, training, self_is_result):
    if training and upper - lower > 1e-6:
        return grad_output * noise
    return gt.where(self > 0, grad_output, grad_output * ((lower + upper) / 2))
