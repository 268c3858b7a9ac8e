"""Pooling and its derivatives."""

from __future__ import annotations

import gt
from gt.nn import functional as F
from gt.torch.kernels import kernel
from gt.torch.kernels.tape import vjp_of_first

_AVERAGE = {2: F.avg_pool2d, 3: F.avg_pool3d}


def _average(axes):
    def forward(
        self,
        kernel_size,
        stride=(),
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
    ):
        return _AVERAGE[axes](
            self,
            kernel_size,
            stride or None,
            padding,
            ceil_mode,
            count_include_pad,
            divisor_override,
        )

    def backward(grad_output, self, *how):
        return vjp_of_first(lambda x: forward(x, *how), grad_output, self)

    kernel(f"avg_pool{axes}d")(forward)
    kernel(f"avg_pool{axes}d_backward")(backward)


def _adaptive_average(axes):
    function = {2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d}[axes]

    def backward(grad_output, self):
        size = list(grad_output.shape[-axes:])
        return vjp_of_first(lambda x: function(x, size), grad_output, self)

    kernel(f"_adaptive_avg_pool{axes}d")(function)
    kernel(f"_adaptive_avg_pool{axes}d_backward")(backward)


def _maximum(axes):
    function = {2: F.max_pool2d, 3: F.max_pool3d}[axes]
    adaptive = {2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}[axes]
    fractional = {2: F.fractional_max_pool2d, 3: F.fractional_max_pool3d}[axes]

    def forward(self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
        return function(
            self, kernel_size, stride or None, padding, dilation, ceil_mode, return_indices=True
        )

    def backward(grad_output, self, *how_and_indices):
        return at_places(grad_output, self, how_and_indices[-1])

    def at_places(grad_output, self, indices):
        """Add each gradient at the index of the element that was the maximum."""
        zeros = gt.zeros_like(self).flatten(-axes)
        found = zeros.scatter_add(-1, indices.flatten(-axes), grad_output.flatten(-axes))
        return found.reshape(self.shape)

    def fractional_forward(self, kernel_size, output_size, random_samples):
        return fractional(
            self, kernel_size, output_size, return_indices=True, _random_samples=random_samples
        )

    kernel(f"max_pool{axes}d_with_indices")(forward)
    kernel(f"max_pool{axes}d_with_indices_backward")(backward)
    kernel(f"adaptive_max_pool{axes}d")(lambda self, size: adaptive(self, size, True))
    kernel(f"adaptive_max_pool{axes}d_backward")(at_places)
    kernel(f"fractional_max_pool{axes}d")(fractional_forward)
    kernel(f"fractional_max_pool{axes}d_backward")(backward)


for _axes in (2, 3):
    _average(_axes)
    _adaptive_average(_axes)
    _maximum(_axes)


def _unpool(self, indices, output_size):
    axes = len(output_size)
    zeros = gt.zeros(*self.shape[:-axes], *output_size, dtype=self.dtype)
    flat = zeros.flatten(-axes).scatter(-1, indices.flatten(-axes), self.flatten(-axes))
    return flat.reshape(zeros.shape)


@kernel("max_unpool2d")
def max_unpool2d(self, indices, output_size):
    return _unpool(self, indices, output_size)


@kernel("max_unpool3d")
def max_unpool3d(self, indices, output_size, stride, padding):
    return _unpool(self, indices, output_size)
