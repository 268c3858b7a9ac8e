"""Resizing and padding of images, and sampling at the points of a grid."""

from __future__ import annotations

import gt
from gt.nn import functional as F
from gt.torch.kernels import kernel
from gt.torch.kernels.tape import vjp, vjp_of_first

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def _upsample(name, mode, has_corners, antialias=False):
    """Register an operator and its derivative."""

    def resize(x, output_size, corners, scales):
        # PyTorch computes coordinates from the scales if they are passed, else from the sizes.
        given = [scale for scale in scales if scale is not None]
        if given and not corners:
            return _by_scales(x, output_size, given, mode, antialias)
        options = {"align_corners": corners} if has_corners else {}
        return F.interpolate(x, list(output_size), mode=mode, antialias=antialias, **options)

    def forward(self, output_size, *rest, **named):
        corners, scales = _split(rest, named)
        return resize(self, output_size, corners, scales)

    def backward(grad_output, output_size, input_size, *rest, **named):
        corners, scales = _split(rest, named)
        zeros = gt.zeros(*input_size, dtype=grad_output.dtype)
        return vjp_of_first(lambda x: resize(x, output_size, corners, scales), grad_output, zeros)

    def _split(rest, named):
        if not has_corners:
            return False, [*rest, *named.values()]
        rest = [*rest, *named.values()]
        return rest[0], rest[1:]

    kernel(name)(forward)
    kernel(f"{name}_backward")(backward)


def _by_scales(x, output_size, scales, mode, antialias):
    """Resize by scale factors, which are more precise than the ratios of the sizes."""
    sizes = tuple(int(n * scale) for n, scale in zip(x.shape[2:], scales, strict=False))
    if len(scales) != x.ndim - 2 or sizes != tuple(output_size):
        return F.interpolate(x, list(output_size), mode=mode, antialias=antialias)
    return F.interpolate(x, scale_factor=scales, mode=mode, antialias=antialias)


_upsample("upsample_nearest1d", "nearest", False)
_upsample("upsample_nearest2d", "nearest", False)
_upsample("upsample_nearest3d", "nearest", False)
_upsample("_upsample_nearest_exact1d", "nearest-exact", False)
_upsample("_upsample_nearest_exact2d", "nearest-exact", False)
_upsample("_upsample_nearest_exact3d", "nearest-exact", False)
_upsample("upsample_linear1d", "linear", True)
_upsample("upsample_bilinear2d", "bilinear", True)
_upsample("upsample_bicubic2d", "bicubic", True)
_upsample("upsample_trilinear3d", "trilinear", True)
kernel("_upsample_bilinear2d_aa")(gt._upsample_bilinear2d_aa)


@kernel("_upsample_bilinear2d_aa_backward")
def bilinear_aa_backward(grad_output, output_size, input_size, *how):
    zeros = gt.zeros(*input_size, dtype=grad_output.dtype)
    return vjp_of_first(
        lambda x: gt._upsample_bilinear2d_aa(x, output_size, *how), grad_output, zeros
    )


_upsample("_upsample_bicubic2d_aa", "bicubic", True, antialias=True)


@kernel("grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    return F.grid_sample(
        input, grid, _MODES[interpolation_mode], _PADDINGS[padding_mode], align_corners
    )


@kernel("grid_sampler_2d_backward", "grid_sampler_3d_backward")
def grid_sampler_backward(
    grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask
):
    def forward(input, grid):
        return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)

    return vjp(forward, grad_output, input, grid, wanted=output_mask)


def _pads(name, mode):
    for axes in (1, 2, 3):

        def forward(self, padding):
            return F.pad(self, list(padding), mode=mode)

        def backward(grad_output, self, padding):
            return vjp_of_first(lambda x: F.pad(x, list(padding), mode=mode), grad_output, self)

        kernel(f"{name}{axes}d")(forward)
        kernel(f"{name}{axes}d_backward")(backward)


_pads("reflection_pad", "reflect")
_pads("replication_pad", "replicate")
