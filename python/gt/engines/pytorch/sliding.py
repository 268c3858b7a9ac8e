"""Window operations over the last axes with PyTorch: convolution and max pooling."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional


def conv_general(
    x: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding_low: Sequence[int],
    padding_high: Sequence[int],
    dilation: Sequence[int],
    base_dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """Convolve; by a transposed convolution if the input is dilated."""
    lists = stride, padding_low, padding_high, dilation, base_dilation
    each = list(zip(x.shape[2:], weight.shape[2:], *lists, strict=True))
    shape = (x.shape[0], weight.shape[0], *(_count(*one) for one in each))
    if 0 in (*shape, *x.shape, *weight.shape):
        return x.new_zeros(shape)
    taken = torch.float64 if x.is_cuda else torch.int64
    is_whole = not (x.dtype.is_floating_point or x.dtype.is_complex)
    if is_whole and x.dtype != taken:
        # CPUs convolve no integers but int64, and GPUs none: there float64 is exact up to 2^53.
        return conv_general(x.to(taken), weight.to(taken), *lists, groups).to(x.dtype)
    none = [0] * len(each)
    if max(base_dilation) == 1 and padding_low == padding_high and min(padding_low) >= 0:
        options = stride, padding_low, dilation, False, none, groups
        return torch.convolution(x, weight, None, *options)
    before = [d * (k - 1) - low for _, k, _, low, _, d, _ in each]
    more = [high - low for _, _, _, low, high, _, _ in each]
    fits = all(0 <= m < max(one[-2:]) for m, one in zip(more, each, strict=True))
    if fits and min(before) >= 0 and max(stride) == 1:
        # A transposed convolution has its kernel reversed, and the input channels of a group first.
        turned = weight.unflatten(0, (groups, -1)).transpose(1, 2).flatten(0, 1)
        turned = turned.flip(list(range(2, x.ndim)))
        options = base_dilation, before, dilation, True, more, groups
        return torch.convolution(x, turned, None, *options)
    x = _spread(x, base_dilation)
    margins = [margin for one in reversed(each) for margin in one[3:5]]
    x = functional.pad(x, margins)
    return torch.convolution(x, weight, None, stride, none, dilation, False, none, groups)


def _count(
    length: int, kernel: int, stride: int, low: int, high: int, dilation: int, base: int
) -> int:
    """Return the number of windows along an axis."""
    room = max((length - 1) * base + 1, 0) + low + high - max((kernel - 1) * dilation + 1, 0)
    return room // stride + 1 if room >= 0 else 0


def _spread(x: Tensor, steps: Sequence[int]) -> Tensor:
    """Insert zeros between the values along the spatial axes."""
    for axis, step in enumerate(steps, 2):
        if step > 1:
            behind = [0, 0] * (x.ndim - axis - 1)
            spread = functional.pad(x.unsqueeze(axis + 1), [*behind, 0, step - 1])
            x = spread.flatten(axis, axis + 1).narrow(axis, 0, (x.shape[axis] - 1) * step + 1)
    return x


def max_pool(
    x: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> tuple[Tensor, Tensor]:
    """Return the maximum of each window and its index."""
    axes = len(kernel_size)
    lead = x.shape[:-axes]
    lists = [list(numbers) for numbers in (kernel_size, stride, padding, dilation)]
    images = x.reshape(math.prod(lead), 1, *x.shape[-axes:])
    if axes == 1:  # an image with a height of 1
        images = images.unsqueeze(-2)
        lists = [[neutral, *list] for neutral, list in zip((1, 1, 0, 1), lists, strict=True)]
    pool = (
        torch.ops.aten.max_pool3d_with_indices
        if axes == 3
        else torch.ops.aten.max_pool2d_with_indices
    )
    if x.is_cuda and not x.dtype.is_floating_point:
        images = images.double()  # GPUs have no max pooling of integers
    values, places = pool(images, *lists, ceil_mode)
    shape = (*lead, *values.shape[values.ndim - axes :])
    return values.to(x.dtype).reshape(shape), places.reshape(shape)
