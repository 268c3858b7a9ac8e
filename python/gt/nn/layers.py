"""Layers."""

import math

from gt import _gt
from gt._gt import Tensor
from gt.nn import functional
from gt.nn.module import Module, Parameter


class Linear(Module):
    """`x @ weight.T + bias`; the weight is out x in, as PyTorch's."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True):
        super().__init__()
        if in_features < 0 or out_features < 0:
            raise ValueError(
                f"Linear: sizes are {in_features} and {out_features}, expected 0 or more"
            )
        self.in_features, self.out_features = in_features, out_features
        # Uniform on ±1/sqrt(in), as PyTorch starts them.
        bound = 1 / math.sqrt(in_features) if in_features else 0.0
        self.weight = Parameter((_gt.rand(out_features, in_features) * 2 - 1) * bound)
        self.bias = Parameter((_gt.rand(out_features) * 2 - 1) * bound) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Give `x @ weight.T + bias` for x of shape (..., in)."""
        out = x @ self.weight.T
        return out if self.bias is None else out + self.bias

    def extra_repr(self) -> str:
        """Say the sizes."""
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"


class Dropout(Module):
    """While training, zero for a share `p` of the elements; the rest is scaled by 1 / (1 - p).

    `inplace` is taken as in PyTorch, and changes nothing.
    """

    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"Dropout: the probability is {p}, expected 0 to 1")
        self.p, self.inplace = p, inplace

    def forward(self, x: Tensor) -> Tensor:
        """Drop elements while training."""
        return functional.dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        """Say the probability."""
        return f"p={self.p}"


class Flatten(Module):
    """All axes from `start_dim` to `end_dim` as one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Tensor) -> Tensor:
        """Merge the axes."""
        return x.flatten(self.start_dim, self.end_dim)


class LayerNorm(Module):
    """(x - mean) / sqrt(var + eps) over the last axes, scaled and shifted (Ba et al., 2016)."""

    def __init__(
        self,
        normalized_shape: int | tuple[int, ...],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
    ):
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else normalized_shape
        self.normalized_shape, self.eps = tuple(shape), eps
        self.weight = Parameter(_gt.ones(*self.normalized_shape)) if elementwise_affine else None
        shifted = elementwise_affine and bias
        self.bias = Parameter(_gt.zeros(*self.normalized_shape)) if shifted else None

    def forward(self, x: Tensor) -> Tensor:
        """Normalize the last axes."""
        return functional.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Say the shape."""
        return f"{self.normalized_shape}, eps={self.eps}"


class Embedding(Module):
    """A row of numbers for each of `num_embeddings` things, by its index."""

    def __init__(self, num_embeddings: int, embedding_dim: int):
        super().__init__()
        if num_embeddings < 0 or embedding_dim < 0:
            raise ValueError(
                f"Embedding: sizes are {num_embeddings} and {embedding_dim}, expected 0 or more"
            )
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.weight = Parameter(_gt.randn(num_embeddings, embedding_dim))

    def forward(self, indices: Tensor) -> Tensor:
        """Give the rows of integer indices: one more axis, of length `embedding_dim`."""
        return functional.embedding(indices, self.weight)

    def extra_repr(self) -> str:
        """Say the sizes."""
        return f"{self.num_embeddings}, {self.embedding_dim}"
