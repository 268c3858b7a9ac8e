"""Upsampling."""

from __future__ import annotations

from typing import Any

from gt._gt import Tensor
from gt.nn import functional as F
from gt.nn.module import Module


class Upsample(Module):
    """Resampling of (batch, channels, axes...) to a size, or by a factor.

    Args:
        size: the lengths of the resulting axes.
        scale_factor: instead of `size`, the factor of the axes' lengths.
        mode: "nearest", "linear", "bilinear", "bicubic" or "trilinear".
        align_corners: whether the centers of the corner pixels stay in place.
        recompute_scale_factor: whether the factor is recomputed from the rounded sizes.

    >>> gt.nn.Upsample(scale_factor=2)(gt.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2., 2.]]], dtype=float32)
    """

    def __init__(
        self,
        size: int | tuple[int, ...] | None = None,
        scale_factor: float | tuple[float, ...] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ):
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        self.scale_factor: Any = None
        if isinstance(scale_factor, tuple):
            self.scale_factor = tuple(float(factor) for factor in scale_factor)
        elif scale_factor:
            self.scale_factor = float(scale_factor)
        self.mode, self.align_corners = mode, align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Resample an input."""
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"
        return f"size={self.size!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Upsampling of images by repeating the nearest pixel."""

    def __init__(
        self,
        size: int | tuple[int, int] | None = None,
        scale_factor: float | tuple[float, float] | None = None,
    ):
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Bilinear upsampling of images; the corners stay in place."""

    def __init__(
        self,
        size: int | tuple[int, int] | None = None,
        scale_factor: float | tuple[float, float] | None = None,
    ):
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
