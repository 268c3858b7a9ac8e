"""Distances between points."""

from __future__ import annotations

import gt
from gt.torch.kernels import kernel
from gt.torch.kernels.tape import vjp, vjp_of_first


@kernel("_pdist_forward")
def pdist(self, p=2.0):
    return gt.pdist(self, p)


@kernel("_pdist_backward")
def pdist_backward(grad_output, self, p, pdist):
    return vjp_of_first(lambda x: gt.pdist(x, p), grad_output, self)


@kernel("_cdist_forward")
def cdist(x1, x2, p, compute_mode):
    return gt.cdist(x1, x2, p)


@kernel("_cdist_backward")
def cdist_backward(grad_output, x1, x2, p, cdist):
    (found,) = vjp(lambda x: gt.cdist(x, x2, p), grad_output, x1)
    return found
