"""The client's modules under the names that the specification gives them."""

from gt import nn
from gt._gt import Tensor
from gt.client import tensor

__all__ = ["Tensor", "nn", "tensor"]
