"""Pruning methods: the choice of elements or slices to prune."""

from __future__ import annotations

from typing import Any

import gt
from gt._gt import Tensor

from ..module import Module
from ._pruning import BasePruningMethod


class Identity(BasePruningMethod):
    """A pruning method that prunes nothing."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the default mask."""
        return default_mask

    @classmethod
    def apply(cls, module: Module, name: str) -> BasePruningMethod:  # type: ignore[override]
        """Prune a parameter of a module."""
        return super().apply(module, name)


class _ByAmount(BasePruningMethod):
    """The common base of methods that prune a number or a fraction of elements or slices."""

    def __init__(self, amount: int | float):
        if isinstance(amount, bool) or not isinstance(amount, (int, float)):
            raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
        if not 0 <= amount <= (1 if isinstance(amount, float) else float("inf")):
            raise ValueError(
                f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
                "integer"
            )
        self.amount: int | float = amount

    def count(self, size: int) -> int:
        """Return the number of elements or slices to prune, out of `size`."""
        if isinstance(self.amount, float):
            return round(self.amount * size)
        if self.amount > size:
            raise ValueError(
                f"amount={self.amount} should be smaller than the number of parameters to "
                f"prune={size}"
            )
        return self.amount

    def lowest_zeroed(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Return a mask with zeros added where the scores, of the mask's shape, are lowest."""
        count = self.count(scores.numel())
        if count == 0:
            return mask.clone()
        lowest = scores.reshape(-1).topk(count, largest=False).indices
        return mask.reshape(-1).index_fill(0, lowest, 0).reshape(mask.shape)


class RandomUnstructured(_ByAmount):
    """A pruning method that removes random elements.

    Args:
        amount: the number of elements, or a fraction from 0.0 to 1.0.
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask with random elements set to zero."""
        return self.lowest_zeroed(gt.rand(t.shape), default_mask)

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: int | float
    ) -> BasePruningMethod:
        """Prune a parameter of a module."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(_ByAmount):
    """A pruning method that removes the elements of smallest magnitude.

    Args:
        amount: the number of elements, or a fraction from 0.0 to 1.0.
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask with the smallest elements set to zero."""
        return self.lowest_zeroed(t.detach().abs(), default_mask)

    @classmethod
    def apply(  # type: ignore[override]
        cls,
        module: Module,
        name: str,
        amount: int | float,
        importance_scores: Tensor | None = None,
    ) -> BasePruningMethod:
        """Prune a parameter of a module."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(_ByAmount):
    """The common base of methods that prune slices along an axis."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: int | float, dim: int = -1):
        super().__init__(amount)
        self.dim = dim

    def checked_axis(self, t: Tensor) -> int:
        """Return `dim` as a nonnegative axis of a tensor."""
        if t.dim() <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor "
                f"of shape {t.shape} with {t.dim()} dims"
            )
        if not -t.dim() <= self.dim < t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        return self.dim % t.dim()

    def lowest_slices_zeroed(self, scores: Tensor, mask: Tensor, axis: int) -> Tensor:
        """Return a mask with zeros added in the slices whose scores are lowest."""
        count = self.count(mask.shape[axis])
        if count == 0:
            return mask.clone()
        lowest = scores.topk(count, largest=False).indices
        return mask.index_fill(axis, lowest, 0)


class RandomStructured(_Structured):
    """A pruning method that removes random slices.

    Args:
        amount: the number of slices, or a fraction from 0.0 to 1.0.
        dim: the axis of the slices.
    """

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask with random slices set to zero."""
        axis = self.checked_axis(t)
        return self.lowest_slices_zeroed(gt.rand(t.shape[axis]), default_mask, axis)

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: int | float, dim: int = -1
    ) -> BasePruningMethod:
        """Prune a parameter of a module."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """A pruning method that removes the slices of smallest norm.

    Args:
        amount: the number of slices, or a fraction from 0.0 to 1.0.
        n: the order of the norm: a number, "fro" or "nuc".
        dim: the axis of the slices.
    """

    def __init__(self, amount: int | float, n: Any, dim: int = -1):
        super().__init__(amount, dim)
        self.n = n

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask with the slices of smallest norm set to zero."""
        axis = self.checked_axis(t)
        return self.lowest_slices_zeroed(self._norms(t.detach(), axis), default_mask, axis)

    def _norms(self, t: Tensor, axis: int) -> Tensor:
        """Return the norm of each slice."""
        others = [other for other in range(t.dim()) if other != axis]
        if self.n == "nuc" or (self.n == "fro" and len(others) == 2):
            return gt.linalg.matrix_norm(t, self.n, dim=others if len(others) == 2 else (-2, -1))
        return gt.linalg.vector_norm(t, 2 if self.n == "fro" else self.n, dim=others)

    @classmethod
    def apply(  # type: ignore[override]
        cls,
        module: Module,
        name: str,
        amount: int | float,
        n: Any,
        dim: int,
        importance_scores: Tensor | None = None,
    ) -> BasePruningMethod:
        """Prune a parameter of a module."""
        return super().apply(
            module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores
        )


class CustomFromMask(BasePruningMethod):
    """A pruning method that applies a mask.

    Args:
        mask: 0 for elements to prune, otherwise 1.
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor):
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the product of the default mask and this method's mask."""
        if default_mask.shape != self.mask.shape:
            raise ValueError(
                f"default_mask shape {default_mask.shape} must match self.mask shape "
                f"{self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Module, name: str, mask: Tensor) -> BasePruningMethod:  # type: ignore[override]
        """Prune a parameter of a module."""
        return super().apply(module, name, mask=mask)
