"""Transforms to Cholesky factors and positive definite matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor
from gt.nn.functional import pad, softplus

from .. import constraints
from ..utils import tril_matrix_to_vec, vec_to_tril_matrix
from .transform import Transform, need_axes


class _OfMatrices(Transform):
    domain = constraints.independent(constraints.real, 2)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    __hash__ = Transform.__hash__


class LowerCholeskyTransform(_OfMatrices):
    """y = the lower triangle of x, with the exponential of its diagonal."""

    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + gt.diag_embed(x.diagonal(dim1=-2, dim2=-1).exp())

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + gt.diag_embed(y.diagonal(dim1=-2, dim2=-1).log())


class PositiveDefiniteTransform(_OfMatrices):
    """y = L L^T, with L = `LowerCholeskyTransform`(x)."""

    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(gt.linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """Vectors of D (D - 1) / 2 numbers to Cholesky factors of D x D correlation matrices.

    The tanh of the numbers fills the strictly lower triangle of a matrix. Each value is the signed
    fraction that its element takes of the norm left in its row, which has norm 1 in all
    (https://mc-stan.org/docs/reference-manual/transforms.html#cholesky-factors-of-correlation-matrices).
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = gt.finfo(x.dtype).eps
        share = vec_to_tril_matrix(x.tanh().clamp(-1 + eps, 1 - eps), diag=-1)
        left = (1 - share**2).sqrt().cumprod(-1)
        share = share + gt.eye(share.shape[-1], dtype=share.dtype)
        return share * pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        left = pad((1 - (y * y).cumsum(-1))[..., :-1], [1, 0], value=1)
        share = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (share.log1p() - (-share).log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Tensor:
        """Return the sum of log |det| of the row normalization and of tanh.

        `intermediates` is accepted for compatibility with PyTorch and ignored.
        """
        left = 1 - (y * y).cumsum(-1)
        if y.shape[-1] > 2:
            breaking = 0.5 * tril_matrix_to_vec(left, diag=-2).log().sum(-1)
        else:
            breaking = x.new_zeros(x.shape[:-1])
        return breaking - 2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Any:
        """Return (..., D, D) for (..., D (D - 1) / 2)."""
        need_axes(shape, 1)
        length = shape[-1]
        size = (math.isqrt(8 * length + 1) + 1) // 2
        if size * (size - 1) // 2 != length:
            raise ValueError(f"Input is not a flattened lower-diagonal number: length {length}")
        return gt.Size((*shape[:-1], size, size))

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        """Return (..., D (D - 1) / 2) for (..., D, D)."""
        need_axes(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError(f"Input is not square: shape {tuple(shape)}")
        return gt.Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))
