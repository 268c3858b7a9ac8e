"""Invertible maps between regions, with the logarithms of their Jacobian determinants.

>>> from gt.distributions import transforms
>>> transforms.ExpTransform().inv(gt.tensor([1.0]))
tensor([0.], dtype=float32)
"""

from .affine import AffineTransform, PowerTransform
from .compose import (
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    identity_transform,
)
from .elementwise import (
    AbsTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
)
from .join import CatTransform, StackTransform
from .matrices import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
)
from .simplex import SoftmaxTransform, StickBreakingTransform
from .transform import Transform

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
