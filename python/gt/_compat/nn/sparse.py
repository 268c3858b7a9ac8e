"""Lookup of rows of a table by index."""

from __future__ import annotations

from typing import Any

import gt
from gt._gt import Tensor
from gt.nn import functional as F

from . import init
from .module import Module
from .parameter import Parameter


class _Table(Module):
    """The common base of modules whose weight is a table of `num_embeddings` rows."""

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None
    max_norm: float | None
    norm_type: float
    scale_grad_by_freq: bool
    sparse: bool

    def _set_sizes(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None, sparse: bool
    ) -> None:
        name = type(self).__name__
        if num_embeddings < 0 or embedding_dim < 0:
            raise ValueError(
                f"{name}: sizes are {num_embeddings} and {embedding_dim}, expected 0 or more"
            )
        if sparse:
            raise NotImplementedError(
                f"{name}: there are no sparse gradients\n  hint: sparse=False returns the same "
                "gradient as a dense tensor"
            )
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < max(num_embeddings, 1):
                raise AssertionError(
                    f"padding_idx must be within num_embeddings: {padding_idx} of {num_embeddings}"
                )
            padding_idx += num_embeddings if padding_idx < 0 else 0
        self.padding_idx = padding_idx

    def _set_weight(self, given: Tensor | None, trained: bool, device: Any, dtype: Any) -> None:
        shape = (self.num_embeddings, self.embedding_dim)
        if given is None:
            self.weight = Parameter(gt.empty(shape, device=device, dtype=dtype), trained)
            self.reset_parameters()
            return
        if tuple(given.shape) != shape:
            raise AssertionError(
                "Shape of weight does not match num_embeddings and embedding_dim: "
                f"{tuple(given.shape)}, expected {shape}"
            )
        self.weight = Parameter(given, requires_grad=trained)

    def reset_parameters(self) -> None:
        """Initialize the rows from a standard normal distribution; the padding row with zeros."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with gt.no_grad():
                self.weight[self.padding_idx].fill_(0)


def _checked(embeddings: Tensor) -> tuple[int, int]:
    if embeddings.ndim != 2:
        raise AssertionError(
            f"Embeddings parameter is expected to be 2-dimensional, not {embeddings.ndim}"
        )
    return embeddings.shape[0], embeddings.shape[1]


class Embedding(_Table):
    """A table of `num_embeddings` rows, looked up by index.

    Args:
        num_embeddings: the number of rows.
        embedding_dim: the length of a row.
        padding_idx: a row that receives no gradient and is initialized with zeros.
        max_norm: used rows with a larger norm are rescaled to this norm, in the weight itself.
        norm_type: the exponent of that norm.
        scale_grad_by_freq: whether a row's gradient is divided by the number of its uses.
        sparse: False; there are no sparse gradients.
        device: accepted as in PyTorch; every device is the cluster.
        dtype: the weight's dtype.

    >>> gt.nn.Embedding(10, 3)(gt.tensor([[1, 2], [4, 9]], dtype=gt.int64)).shape
    (2, 2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        self._set_sizes(num_embeddings, embedding_dim, padding_idx, sparse)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self._set_weight(_weight, not _freeze, device, dtype)
        self.sparse = sparse

    def forward(self, input: Tensor) -> Tensor:
        """Return the rows at integer indices: one more axis, of length `embedding_dim`."""
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq:
            parts.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """Create an instance that shares a table; it is trained only if `freeze` is False."""
        return cls(
            *_checked(embeddings),
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
            _weight=embeddings,
            _freeze=freeze,
        )


class EmbeddingBag(_Table):
    """The mean, sum or maximum of rows over bags of indices.

    Args:
        num_embeddings: the number of rows.
        embedding_dim: the length of a row.
        max_norm: used rows with a larger norm are rescaled to this norm, in the weight itself.
        norm_type: the exponent of that norm.
        scale_grad_by_freq: whether a row's gradient is divided by the number of its uses.
        mode: "mean", "sum" or "max".
        sparse: False; there are no sparse gradients.
        include_last_offset: whether the last offset is the end of the last bag.
        padding_idx: a row that is excluded from bags and is initialized with zeros.
        device: accepted as in PyTorch; every device is the cluster.
        dtype: the weight's dtype.

    >>> gt.nn.EmbeddingBag(10, 3)(gt.tensor([[1, 2], [4, 9]], dtype=gt.int64)).shape
    (2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        self._set_sizes(num_embeddings, embedding_dim, padding_idx, sparse)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self._set_weight(_weight, True, device, dtype)
        self.mode, self.sparse = mode, sparse
        self.include_last_offset = include_last_offset

    def forward(
        self,
        input: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        """Return one row per bag; a bag is a row of `input`, or the indices between two offsets."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq:
            parts.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        parts.append(f"mode={self.mode!r}")
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """Create an instance that shares a table; it is trained only if `freeze` is False."""
        made = cls(
            *_checked(embeddings),
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            mode=mode,
            sparse=sparse,
            _weight=embeddings,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        made.weight.requires_grad = not freeze
        return made
