"""`gt.client`: the client's modules under the names in the specification."""

from gt import nn
from gt._gt import Tensor

from . import tensor

__all__ = ["Tensor", "nn", "tensor"]
