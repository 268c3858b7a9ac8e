"""Upsampling."""

from __future__ import annotations

from gt.nn import functional as F

from .forwarding import Forwarding, options


@options
class Upsample(Forwarding, function=F.interpolate):
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

    size: int | tuple[int, ...] | None = None
    scale_factor: float | tuple[float, ...] | None = None
    mode: str = "nearest"
    align_corners: bool | None = None
    recompute_scale_factor: bool | None = None

    def __post_init__(self) -> None:
        self.name = type(self).__name__
        factor = self.scale_factor
        if isinstance(factor, tuple):
            self.scale_factor = tuple(float(one) for one in factor)
        else:
            self.scale_factor = float(factor) if factor else None

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
