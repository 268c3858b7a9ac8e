"""What operations with several results give."""

from typing import NamedTuple

from gt._gt import Tensor


class ValuesIndices(NamedTuple):
    """The values along an axis and where they were, as `max(dim)` gives them."""

    values: Tensor
    indices: Tensor
