"""Invertible maps between regions, with the logarithms of their Jacobian determinants.

>>> from gt.distributions import transforms
>>> transforms.ExpTransform().inv(gt.tensor([1.0]))
tensor([0.], dtype=float32)
"""

from gt.distributions.transforms.affine import AffineTransform, PowerTransform
from gt.distributions.transforms.compose import (
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    identity_transform,
)
from gt.distributions.transforms.elementwise import (
    AbsTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
)
from gt.distributions.transforms.join import CatTransform, StackTransform
from gt.distributions.transforms.matrices import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
)
from gt.distributions.transforms.simplex import SoftmaxTransform, StickBreakingTransform
from gt.distributions.transforms.transform import Transform

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]
