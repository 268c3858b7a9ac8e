"""What operations with several results give."""

from typing import NamedTuple

from gt._gt import Tensor


class ValuesIndices(NamedTuple):
    """The values along an axis and where they were, as `max(dim)` gives them."""

    values: Tensor
    indices: Tensor


class MinMax(NamedTuple):
    """The smallest and the largest value, as `aminmax` gives them."""

    min: Tensor
    max: Tensor


class Histogram(NamedTuple):
    """Counts and the ends of the intervals, as `histogram` and `histogramdd` give them."""

    hist: Tensor
    bin_edges: Tensor | tuple[Tensor, ...]
