"""Layers that merge axes, and split one."""

from __future__ import annotations

from collections.abc import Sequence

from gt._gt import Tensor

from .forwarding import Forwarding, options
from .module import Module


@options
class Flatten(Forwarding, function=Tensor.flatten):
    """A layer that merges the axes from `start_dim` to `end_dim` into one.

    >>> gt.nn.Flatten()(gt.ones(2, 3, 4)).shape
    (2, 12)
    """

    start_dim: int = 1
    end_dim: int = -1


class Unflatten(Module):
    """A layer that splits the axis `dim` into axes of the lengths `unflattened_size`.

    >>> gt.nn.Unflatten(1, (3, 4))(gt.ones(2, 12)).shape
    (2, 3, 4)
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]):
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                "unflattened_size must be a tuple of ints, but found type "
                f"{type(unflattened_size).__name__}"
            )
        for position, length in enumerate(unflattened_size):
            if not isinstance(length, int):
                raise TypeError(
                    "unflattened_size must be tuple of ints, but found element of type "
                    f"{type(length).__name__} at pos {position}"
                )
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        """Split the axis."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
