"""The layers of einops as modules of GT: `from einops.layers.gt import Rearrange`."""

from __future__ import annotations

from typing import Any

from einops.layers import RearrangeMixin, ReduceMixin
from einops.layers._einmix import _EinmixMixin

import gt

__all__ = ["EinMix", "Rearrange", "Reduce"]


class Rearrange(RearrangeMixin, gt.nn.Module):
    """A module that applies `einops.rearrange` to its input.

    Args:
        pattern: the pattern, such as `"b c h w -> b (c h w)"`.
        axes_lengths: the lengths of axes, by name.
    """

    def forward(self, input: gt.Tensor) -> gt.Tensor:
        """Return the rearranged input."""
        return self._apply_recipe(input)


class Reduce(ReduceMixin, gt.nn.Module):
    """A module that applies `einops.reduce` to its input.

    Args:
        pattern: the pattern, such as `"b c h w -> b c"`.
        reduction: `"min"`, `"max"`, `"sum"`, `"mean"`, `"prod"`, `"any"` or `"all"`.
        axes_lengths: the lengths of axes, by name.
    """

    def forward(self, input: gt.Tensor) -> gt.Tensor:
        """Return the reduced input."""
        return self._apply_recipe(input)


class EinMix(_EinmixMixin, gt.nn.Module):
    """A linear layer between named axes: an einsum with a weight, and einops's rearrangements.

    Args:
        pattern: the pattern from input to output, such as `"b (h c) -> b h d"`.
        weight_shape: the axes of the weight.
        bias_shape: the axes of the bias; None for no bias.
        axes_lengths: the lengths of the axes of weight and bias.
    """

    weight: gt.nn.Parameter
    bias: gt.nn.Parameter | None

    def _create_parameters(
        self,
        weight_shape: list[int],
        weight_bound: float,
        bias_shape: list[int] | None,
        bias_bound: float,
    ) -> None:
        self.weight = _uniform(weight_shape, weight_bound)
        self.bias = None if bias_shape is None else _uniform(bias_shape, bias_bound)

    def _create_rearrange_layers(
        self,
        pre_reshape_pattern: str | None,
        pre_reshape_lengths: dict[str, int] | None,
        post_reshape_pattern: str | None,
        post_reshape_lengths: dict[str, int] | None,
    ) -> None:
        self.pre_rearrange = _rearrange(pre_reshape_pattern, pre_reshape_lengths)
        self.post_rearrange = _rearrange(post_reshape_pattern, post_reshape_lengths)

    def forward(self, input: gt.Tensor) -> gt.Tensor:
        """Return the product of input and weight, with the bias added."""
        if self.pre_rearrange is not None:
            input = self.pre_rearrange(input)
        result = gt.einsum(self.einsum_pattern, input, self.weight)
        if self.bias is not None:
            result = result + self.bias
        return result if self.post_rearrange is None else self.post_rearrange(result)


def _uniform(shape: list[int], bound: float) -> gt.nn.Parameter:
    return gt.nn.Parameter(gt.zeros(shape).uniform_(-bound, bound))


def _rearrange(pattern: str | None, lengths: dict[str, Any] | None) -> Rearrange | None:
    return None if pattern is None else Rearrange(pattern, **(lengths or {}))
