"""The client's modules under the names that the specification gives them."""

from gt import nn
from gt._gt import Tensor

__all__ = ["Tensor", "nn"]
