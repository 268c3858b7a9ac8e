"""Batch normalization, which also updates running statistics."""

from __future__ import annotations

import torch

from gt._gt import torch_device
from gt.torch.kernels import normalization, raw
from gt.torch.steps import together

_trained = torch_device.Kernel("batch_norm", normalization.batch_norm_trained)
_evaluated = torch_device.Kernel("batch_norm", normalization.batch_norm_evaluated)
_backward = torch_device.Kernel("batch_norm_backward", normalization.native_batch_norm_backward)


@raw("native_batch_norm", "_native_batch_norm_legit")
def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    if not training:
        result = _evaluated(input, weight, bias, running_mean, running_var, eps)
        return result, input.new_empty(0), input.new_empty(0)
    result, mean, rstd, variance = _trained(input, weight, bias, eps)
    end = together(running_mean, running_var)
    if running_mean is not None:
        running_mean.lerp_(mean.to(running_mean.dtype), momentum)
    if running_var is not None:
        running_var.lerp_(variance.to(running_var.dtype), momentum)
    # If part of the batch failed, both statistics are unchanged.
    end()
    return result, mean, rstd


@raw("_native_batch_norm_legit.no_stats")
def no_stats(input, weight, bias, training, momentum, eps):
    return native_batch_norm(input, weight, bias, None, None, True, momentum, eps)


@raw("_native_batch_norm_legit_no_training")
def no_training(input, weight, bias, running_mean, running_var, momentum, eps):
    return native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)


@raw("_batch_norm_with_update")
def with_update(input, weight, bias, running_mean, running_var, momentum, eps):
    found = native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return (*found, input.new_empty(0, dtype=torch.uint8))


@raw("_batch_norm_no_update")
def no_update(input, weight, bias, running_mean, running_var, momentum, eps):
    found = native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)
    return (*found, input.new_empty(0, dtype=torch.uint8))


@raw("batch_norm_backward")
def batch_norm_backward(*args):
    # The last argument is the reserved space of `_batch_norm_with_update`, which is empty.
    return _backward(*args[:-1])
