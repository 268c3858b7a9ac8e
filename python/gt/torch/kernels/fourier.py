"""Fourier transforms, whose normalization PyTorch's operators take as a number."""

from __future__ import annotations

import gt
from gt.torch.kernels import kernel

#: The `norm` of a forward and of an inverse transform that divides by 1, by sqrt(n), or by n.
_FORWARD = ("backward", "ortho", "forward")
_BACK = ("forward", "ortho", "backward")


@kernel("_fft_r2c")
def fft_r2c(self, dim, normalization, onesided):
    function = gt.fft.rfftn if onesided else gt.fft.fftn
    return function(self, dim=dim, norm=_FORWARD[normalization])


@kernel("_fft_c2r")
def fft_c2r(self, dim, normalization, last_dim_size):
    size = [*(self.shape[axis] for axis in dim[:-1]), last_dim_size]
    return gt.fft.irfftn(self, s=size, dim=dim, norm=_BACK[normalization])


@kernel("_fft_c2c")
def fft_c2c(self, dim, normalization, forward):
    if not dim:
        return self
    if forward:
        return gt.fft.fftn(self, dim=dim, norm=_FORWARD[normalization])
    return gt.fft.ifftn(self, dim=dim, norm=_BACK[normalization])
