"""Tensors and the functions that create them; `gt` has all of them as well.

>>> from gt.client.tensor import randn
>>> randn(2, 3).shape
(2, 3)
"""

from gt import arange, cat, from_numpy, full, no_grad, ones, rand, randn, tensor, zeros
from gt._gt import Tensor

__all__ = [
    "Tensor",
    "arange",
    "cat",
    "from_numpy",
    "full",
    "no_grad",
    "ones",
    "rand",
    "randn",
    "tensor",
    "zeros",
]
