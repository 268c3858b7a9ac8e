"""Convolutions, patches and their derivatives."""

from __future__ import annotations

import torch

import gt
from gt.nn import functional as F
from gt.torch.kernels import kernel, raw
from gt.torch.kernels.tape import vjp, vjp_of_first
from gt.torch.layouts import CHANNELS_LAST, is_channels_last

_PLAIN = (F.conv1d, F.conv2d, F.conv3d)
_TRANSPOSED = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)


def _each(values, count):
    return list(values) * count if len(values) == 1 else list(values)


@kernel("convolution_overrideable")
def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    axes = weight.ndim - 2
    stride, padding, dilation = (_each(of, axes) for of in (stride, padding, dilation))
    if not transposed:
        return _PLAIN[axes - 1](input, weight, bias, stride, padding, dilation, groups)
    more = _each(output_padding, axes)
    return _TRANSPOSED[axes - 1](input, weight, bias, stride, padding, more, groups, dilation)


#: PyTorch's own kernel, which checks the arguments and calls the one above.
_OF_PYTORCH = torch._C.DispatchKeySet(torch._C.DispatchKey.CompositeExplicitAutograd)


@raw("convolution")
def convolution_in_order(input, weight, *how):
    """Convolve; the result is channels last if the input or the weight is, as on the CPU."""
    made = torch.ops.aten.convolution.default.redispatch(_OF_PYTORCH, input, weight, *how)
    if input.is_contiguous() and weight.is_contiguous():
        return made
    if not (_is_channels_last(input) or _is_channels_last(weight)):
        return made
    if made.ndim == 3:
        return made.unsqueeze(2).contiguous(memory_format=torch.channels_last).squeeze(2)
    return made.contiguous(memory_format=CHANNELS_LAST[made.ndim])


def _is_channels_last(tensor):
    return is_channels_last(tensor.unsqueeze(2) if tensor.ndim == 3 else tensor)


@kernel("convolution_backward_overrideable")
def convolution_backward(
    grad_output,
    input,
    weight,
    stride,
    padding,
    dilation,
    transposed,
    output_padding,
    groups,
    output_mask,
):
    def forward(input, weight):
        return convolution(
            input, weight, None, stride, padding, dilation, transposed, output_padding, groups
        )

    of_input, of_weight = vjp(forward, grad_output, input, weight, wanted=output_mask[:2])
    axes = [0, *range(2, grad_output.ndim)]
    return of_input, of_weight, grad_output.sum(axes) if output_mask[2] else None


@kernel("im2col")
def im2col(self, kernel_size, dilation, padding, stride):
    return F.unfold(self, kernel_size, dilation, padding, stride)


@kernel("col2im")
def col2im(self, output_size, kernel_size, dilation, padding, stride):
    return F.fold(self, output_size, kernel_size, dilation, padding, stride)


@kernel("unfold_backward")
def unfold_backward(grad_in, input_sizes, dim, size, step):
    zeros = gt.zeros(*input_sizes, dtype=grad_in.dtype)
    return vjp_of_first(lambda x: x.unfold(dim, size, step), grad_in, zeros)
