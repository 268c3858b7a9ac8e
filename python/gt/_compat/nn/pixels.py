"""Layers that exchange channels and pixels, or reorder channels."""

from __future__ import annotations

from gt.nn import functional as F

from .forwarding import Forwarding, options


@options
class PixelShuffle(Forwarding, function=F.pixel_shuffle):
    """A layer that rearranges (..., C r², H, W) to (..., C, H r, W r) (Shi et al., 2016).

    >>> gt.nn.PixelShuffle(3)(gt.randn(1, 9, 4, 4)).shape
    (1, 1, 12, 12)
    """

    upscale_factor: int


@options
class PixelUnshuffle(Forwarding, function=F.pixel_unshuffle):
    """The inverse of `PixelShuffle`: it rearranges (..., C, H r, W r) to (..., C r², H, W)."""

    downscale_factor: int


@options
class ChannelShuffle(Forwarding, function=F.channel_shuffle):
    """A layer that interleaves the channels, axis 1, of `groups` groups (Zhang et al., 2018)."""

    groups: int
