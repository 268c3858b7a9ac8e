"""Shapes, as `x.shape` gives them."""

import math


class Size(tuple):
    """The length of each axis: a tuple that also counts elements, as PyTorch's does.

    >>> gt.ones(2, 3).shape.numel()
    6
    """

    __slots__ = ()

    def numel(self) -> int:
        """Give the number of elements: the product of the lengths."""
        return math.prod(self)
