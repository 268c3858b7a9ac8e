"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any

from gt._gt import Tensor

from . import constraints
from .gamma import Gamma
from .utils import broadcast_all

__all__ = ["Chi2"]


class Chi2(Gamma):
    """Chi-squared distribution with `df` degrees of freedom: Gamma(df / 2, 1 / 2).

    >>> from gt.distributions import Chi2
    >>> Chi2(gt.tensor([3.0])).variance
    tensor([6.], dtype=float32)
    """

    arg_constraints = {"df": constraints.positive}
    _batched = ("concentration", "rate")

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        (df,) = broadcast_all(df)
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2
