"""Divergences of multivariate normal and of composed distributions."""

from __future__ import annotations

from typing import Any

import gt
from gt._gt import Tensor

from ..exp_family import ExponentialFamily
from ..independent import Independent
from ..lowrank_multivariate_normal import LowRankMultivariateNormal
from ..multivariate_normal import (
    MultivariateNormal,
    batch_mahalanobis,
    half_log_det,
)
from ..transformed_distribution import TransformedDistribution
from ..utils import sum_rightmost
from .registry import kl_divergence, register_kl


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _normal_vectors(p: Any, q: Any) -> Tensor:
    """Return (log det(Q P^-1) + tr(Q^-1 P) + (m_q - m_p)^T Q^-1 (m_q - m_p) - n) / 2.

    P and Q are the covariances, m_p and m_q the means
    (https://en.wikipedia.org/wiki/Multivariate_normal_distribution).
    """
    if tuple(p.event_shape) != tuple(q.event_shape):
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event "
            f"shapes cannot be computed: {tuple(p.event_shape)} and {tuple(q.event_shape)}"
        )
    apart = q.loc - p.loc
    if isinstance(q, LowRankMultivariateNormal):
        distance = q._mahalanobis(apart)
    else:
        distance = batch_mahalanobis(q._unbroadcasted_scale_tril, apart)
    trace = sum(_trace(q, part) for part in _parts(p))
    return 0.5 * (_log_det(q) - _log_det(p) + trace + distance - p.event_shape[0])


def _log_det(d: Any) -> Tensor:
    if isinstance(d, LowRankMultivariateNormal):
        return d._log_det()
    return 2 * half_log_det(d._unbroadcasted_scale_tril)


def _parts(p: Any) -> list[Tensor]:
    """Return matrices A whose products A A^T sum to the covariance of p."""
    if isinstance(p, LowRankMultivariateNormal):
        diagonal = gt.diag_embed(p._unbroadcasted_cov_diag.sqrt())
        return [p._unbroadcasted_cov_factor, diagonal]
    return [p._unbroadcasted_scale_tril]


def _trace(q: Any, part: Tensor) -> Tensor:
    """Return tr(Q^-1 A A^T)."""
    if isinstance(q, LowRankMultivariateNormal):
        by_diagonal = part * q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1)
        return _squares(by_diagonal) - _squares(q._solved_factor() @ part)
    factor = q._unbroadcasted_scale_tril
    batch = gt.broadcast_shapes(factor.shape[:-2], part.shape[:-2])
    factor = factor.expand((*batch, *factor.shape[-2:]))
    part = part.expand((*batch, *part.shape[-2:]))
    return _squares(gt.linalg.solve_triangular(factor, part, upper=False))


def _squares(matrix: Tensor) -> Tensor:
    return (matrix**2).sum((-2, -1))


@register_kl(Independent, Independent)
def _independent(p: Independent[Any], q: Independent[Any]) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "KL between Independent distributions of different reinterpreted_batch_ndims, "
            f"{p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims}, is not implemented"
        )
    result = kl_divergence(p.base_dist, q.base_dist)
    return sum_rightmost(result, p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    """Compare the transforms, which must be equal; one boolean is fetched per tensor in them."""
    if p.transforms != q.transforms or tuple(p.event_shape) != tuple(q.event_shape):
        raise NotImplementedError(
            "KL between transformed distributions of different transforms or event shapes "
            "is not implemented"
        )
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: Any, q: Any) -> Tensor:
    """Return the Bregman divergence of the log normalizers, for p and q of the same family."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed "
            f"using Bregman divergences: {type(p).__name__} and {type(q).__name__}"
        )
    of_p, normalizer, means = p._mean_statistics()
    result = q._log_normalizer(*q._natural_params) - normalizer
    for own, other, mean in zip(of_p, q._natural_params, means, strict=True):
        term = (other - own) * mean
        result = result - sum_rightmost(term, term.dim() - result.dim())
    return result
