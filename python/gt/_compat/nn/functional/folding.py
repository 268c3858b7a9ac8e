"""Extraction of image blocks as columns, and the reverse."""

from __future__ import annotations

import math

from gt._gt import Tensor
from gt.ops.annotations import Size
from gt.ops.registry import function
from gt.ops.sliding import check_spatial, counts, overlapped, per_axis, wide, windows


@function(namespace="gt.nn.functional")
def unfold(
    input: Tensor, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1
) -> Tensor:
    """Return all blocks of an image as columns: (batch, channels * block, number of blocks).

    Args:
        input: (channels, height, width), with or without a batch axis.
        kernel_size: the height and width of a block.
        dilation: the step from one value in a block to the next.
        padding: the number of zeros around the image.
        stride: the step from one block to the next.

    >>> gt.nn.functional.unfold(gt.arange(6).reshape(1, 2, 3), (2, 1))
    tensor([[0, 1, 2],
            [3, 4, 5]], dtype=int64)
    """
    check_spatial("unfold", input, 2)
    kernel, stride, padding, dilation = _options("unfold", kernel_size, stride, padding, dilation)
    found = windows(input, kernel, stride, padding, dilation, name="unfold")
    return found.flatten(-2).flatten(-4, -2)


@function(namespace="gt.nn.functional")
def fold(
    input: Tensor,
    output_size: Size,
    kernel_size: Size,
    dilation: Size = 1,
    padding: Size = 0,
    stride: Size = 1,
) -> Tensor:
    """Add up the columns of `unfold` at their positions in the image.

    Args:
        input: (channels * block, number of blocks), with or without a batch axis.
        output_size: the height and width of the image.
        kernel_size: the height and width of a block.
        dilation: the step from one value in a block to the next.
        padding: the width of the border around the image that blocks cover and the result lacks.
        stride: the step from one block to the next.

    >>> gt.nn.functional.fold(gt.ones(2, 2), output_size=(1, 3), kernel_size=(1, 2))
    tensor([[[1., 2., 1.]]], dtype=float32)
    """
    kernel, stride, padding, dilation = _options("fold", kernel_size, stride, padding, dilation)
    size = per_axis("fold", "output_size", output_size, 2)
    numbers = counts("fold", size, kernel, stride, padding, dilation)
    block, blocks = math.prod(kernel), math.prod(numbers)
    if input.ndim not in (2, 3) or input.shape[-2] % block or input.shape[-1] != blocks:
        raise ValueError(
            f"fold: input has shape {input.shape}, expected (batch, channels * {block}, {blocks}) "
            "or the same without batch"
        )
    channels = input.shape[-2] // block
    columns = input.reshape(*input.shape[:-2], channels, *kernel, *numbers)
    return overlapped(wide(columns), size, stride, padding, dilation)._cast(input.dtype)


def _options(
    name: str, kernel_size: Size, stride: Size, padding: Size, dilation: Size
) -> list[tuple[int, ...]]:
    """Return each option as two ints, for the height and the width."""
    options = dict(kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)
    return [per_axis(name, parameter, value, 2) for parameter, value in options.items()]
