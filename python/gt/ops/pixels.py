"""Exchange of values between channels and pixels, and of channels between groups."""

from __future__ import annotations

import math

from gt._gt import Tensor
from gt.ops.registry import function
from gt.ops.sizes import need_axes


@function
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Rearrange channels into larger images: (c r^2, h, w) to (c, h r, w r) (Shi et al., 2016).

    >>> gt.nn.functional.pixel_shuffle(gt.arange(4).reshape(4, 1, 1), 2)
    tensor([[[0, 1],
             [2, 3]]], dtype=int64)
    """
    need_axes("pixel_shuffle", input, 3)
    *lead, channels, height, width = input.shape
    r = upscale_factor
    if r < 1 or channels % (r * r):
        raise ValueError(
            f"pixel_shuffle: upscale_factor is {r}, expected 1 or more, its square a divisor of "
            f"{channels} channels"
        )
    blocks = input.reshape(math.prod(lead), channels // (r * r), r, r, height, width)
    return blocks.permute(0, 1, 4, 2, 5, 3).reshape(
        *lead, channels // (r * r), height * r, width * r
    )


@function
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Rearrange pixels into more channels: (c, h r, w r) to (c r^2, h, w).

    >>> gt.nn.functional.pixel_unshuffle(gt.arange(4).reshape(1, 2, 2), 2).shape
    (4, 1, 1)
    """
    need_axes("pixel_unshuffle", input, 3)
    *lead, channels, height, width = input.shape
    r = downscale_factor
    if r < 1 or height % r or width % r:
        raise ValueError(
            f"pixel_unshuffle: downscale_factor is {r}, expected a divisor of height {height} and "
            f"width {width}"
        )
    blocks = input.reshape(math.prod(lead), channels, height // r, r, width // r, r)
    return blocks.permute(0, 1, 3, 5, 2, 4).reshape(
        *lead, channels * r * r, height // r, width // r
    )


@function(aliases=("native_channel_shuffle",))
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Interleave the channels (axis 1) of the groups (Zhang et al., 2018).

    >>> gt.nn.functional.channel_shuffle(gt.arange(4).reshape(1, 4, 1), 2).flatten()
    tensor([0, 2, 1, 3], dtype=int64)
    """
    need_axes("channel_shuffle", input, 3)
    batch, channels, *lengths = input.shape
    if groups < 1 or channels % groups:
        raise ValueError(
            f"channel_shuffle: groups is {groups}, expected a divisor of {channels} channels"
        )
    grouped = input.reshape(batch, groups, channels // groups, *lengths)
    return grouped.transpose(1, 2).reshape(input.shape)
