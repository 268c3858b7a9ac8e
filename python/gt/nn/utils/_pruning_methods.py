"""Which elements or slices of a tensor are pruned."""

from __future__ import annotations

from typing import Any

import gt
from gt._gt import Tensor
from gt.nn.module import Module
from gt.nn.utils._pruning import BasePruningMethod


class Identity(BasePruningMethod):
    """Prunes nothing."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Give the mask there is."""
        return default_mask

    @classmethod
    def apply(cls, module: Module, name: str) -> BasePruningMethod:  # type: ignore[override]
        """Prune a parameter of a module."""
        return super().apply(module, name)


class _ByAmount(BasePruningMethod):
    """Prunes so many elements or slices: a whole number of them, or a share."""

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
        """Give how many of `size` are pruned."""
        if isinstance(self.amount, float):
            return round(self.amount * size)
        if self.amount > size:
            raise ValueError(
                f"amount={self.amount} should be smaller than the number of parameters to "
                f"prune={size}"
            )
        return self.amount

    def lowest_zeroed(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Give a mask with zeros where the scores, of the mask's shape, are lowest."""
        count = self.count(scores.numel())
        if count == 0:
            return mask.clone()
        lowest = scores.reshape(-1).topk(count, largest=False).indices
        return mask.reshape(-1).index_fill(0, lowest, 0).reshape(mask.shape)


class RandomUnstructured(_ByAmount):
    """Prunes elements at random.

    Args:
        amount: how many: a whole number, or a share from 0 to 1.
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Give the mask with some elements more set to zero."""
        return self.lowest_zeroed(gt.rand(t.shape), default_mask)

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: int | float
    ) -> BasePruningMethod:
        """Prune a parameter of a module."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(_ByAmount):
    """Prunes the elements with the least magnitude.

    Args:
        amount: how many: a whole number, or a share from 0 to 1.
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Give the mask with the least elements set to zero, too."""
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
    """Prunes slices along an axis."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: int | float, dim: int = -1):
        super().__init__(amount)
        self.dim = dim

    def checked_axis(self, t: Tensor) -> int:
        """Give the axis of a tensor."""
        if t.dim() <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor "
                f"of shape {t.shape} with {t.dim()} dims"
            )
        if not -t.dim() <= self.dim < t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        return self.dim % t.dim()

    def lowest_slices_zeroed(self, scores: Tensor, mask: Tensor, axis: int) -> Tensor:
        """Give a mask with zeros in the slices whose scores are lowest."""
        count = self.count(mask.shape[axis])
        if count == 0:
            return mask.clone()
        lowest = scores.topk(count, largest=False).indices
        return mask.index_fill(axis, lowest, 0)


class RandomStructured(_Structured):
    """Prunes slices at random.

    Args:
        amount: how many slices: a whole number, or a share from 0 to 1.
        dim: the axis along which they are counted.
    """

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Give the mask with some slices more set to zero."""
        axis = self.checked_axis(t)
        return self.lowest_slices_zeroed(gt.rand(t.shape[axis]), default_mask, axis)

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: int | float, dim: int = -1
    ) -> BasePruningMethod:
        """Prune a parameter of a module."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the slices with the least norm.

    Args:
        amount: how many slices: a whole number, or a share from 0 to 1.
        n: which norm: a number, or "fro" or "nuc".
        dim: the axis along which they are counted.
    """

    def __init__(self, amount: int | float, n: Any, dim: int = -1):
        super().__init__(amount, dim)
        self.n = n

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Give the mask with the least slices set to zero, too."""
        axis = self.checked_axis(t)
        return self.lowest_slices_zeroed(self._norms(t.detach(), axis), default_mask, axis)

    def _norms(self, t: Tensor, axis: int) -> Tensor:
        """Give the norm of each slice."""
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
    """Prunes by a mask.

    Args:
        mask: 0 where an element is pruned, otherwise 1.
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor):
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Give the mask there is times this one."""
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
