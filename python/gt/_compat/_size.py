"""The type of `x.shape`."""

import math


class Size(tuple[int, ...]):
    """The length of each axis: a tuple with PyTorch's `numel()`.

    >>> gt.ones(2, 3).shape.numel()
    6
    """

    __slots__ = ()

    def numel(self) -> int:
        """Return the number of elements: the product of the lengths."""
        return math.prod(self)
