"""Channels exchanged with pixels, or with other channels."""

from __future__ import annotations

from gt._gt import Tensor
from gt.nn import functional as F
from gt.nn.module import Module


class PixelShuffle(Module):
    """Channels to pixels: (..., C r², H, W) becomes (..., C, H r, W r) (Shi et al., 2016).

    >>> gt.nn.PixelShuffle(3)(gt.randn(1, 9, 4, 4)).shape
    (1, 1, 12, 12)
    """

    def __init__(self, upscale_factor: int):
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Shuffle an input."""
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        """Say the factor."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """What undoes `PixelShuffle`: (..., C, H r, W r) becomes (..., C r², H, W)."""

    def __init__(self, downscale_factor: int):
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Shuffle an input."""
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        """Say the factor."""
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Takes the channels of axis 1 from each of `groups` groups in turn (Zhang et al., 2018)."""

    def __init__(self, groups: int):
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """Shuffle an input."""
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        """Say how many groups there are."""
        return f"groups={self.groups}"
