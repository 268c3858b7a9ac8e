"""Kullback-Leibler divergences between pairs of distributions.

>>> from gt.distributions import Normal, kl_divergence
>>> kl_divergence(Normal(gt.tensor([0.0]), 1.0), Normal(gt.tensor([2.0]), 1.0))
tensor([2.], dtype=float32)
"""

from . import continuous, infinite, same, structured  # noqa: F401
from .registry import kl_divergence, register_kl

__all__ = ["kl_divergence", "register_kl"]
