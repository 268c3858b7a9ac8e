"""Layers that exchange channels and pixels, or reorder channels."""

from __future__ import annotations

from gt._gt import Tensor
from gt.nn import functional as F
from gt.nn.module import Module


class PixelShuffle(Module):
    """A layer that rearranges (..., C r², H, W) to (..., C, H r, W r) (Shi et al., 2016).

    >>> gt.nn.PixelShuffle(3)(gt.randn(1, 9, 4, 4)).shape
    (1, 1, 12, 12)
    """

    def __init__(self, upscale_factor: int):
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Return the rearranged input."""
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """The inverse of `PixelShuffle`: it rearranges (..., C, H r, W r) to (..., C r², H, W)."""

    def __init__(self, downscale_factor: int):
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Return the rearranged input."""
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """A layer that interleaves the channels, axis 1, of `groups` groups (Zhang et al., 2018)."""

    def __init__(self, groups: int):
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """Return the rearranged input."""
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"groups={self.groups}"
