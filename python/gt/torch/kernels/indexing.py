"""Indexing by tensors, embeddings and unique values."""

from __future__ import annotations

import gt
from gt._gt import primitives
from gt.torch.kernels import kernel, raw


def _entries(indices):
    return tuple(slice(None) if index is None else index for index in indices)


@kernel("index.Tensor", "_unsafe_index.Tensor", mixed=True)
def index(self, indices):
    return self[_entries(indices)]


@kernel("index_put", "_index_put_impl", "_index_put_impl_", "_unsafe_index_put", mixed=True)
def index_put(self, indices, values, accumulate=False, unsafe=False):
    values = values.to(self.dtype) if values.ndim == 0 else values
    return self.index_put(_entries(indices), values, accumulate)


@kernel("embedding")
def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    places = indices if indices.ndim == 1 else indices.reshape(-1)
    rows = primitives.index_select(weight, 0, places)
    return rows if indices.ndim == 1 else rows.reshape(*indices.shape, weight.shape[1])


@raw("embedding_sparse_backward")
def embedding_sparse_backward(*args):
    raise RuntimeError(
        "embedding_sparse_backward: the device cluster has no sparse gradients\n"
        "  hint: torch.nn.Embedding(..., sparse=False)"
    )


@kernel("embedding_renorm")
def embedding_renorm(self, indices, max_norm, norm_type):
    named = gt.zeros(self.shape[0], dtype=gt.bool)
    named = named.index_fill(0, indices.reshape(-1).long(), True).unsqueeze(1)
    norms = gt.linalg.vector_norm(self, norm_type, 1, keepdim=True)
    shorter = self * (max_norm / (norms + 1e-7))
    return gt.where(named & (norms > max_norm), shorter, self)


def grad_of_table(rows, places, count, padding_idx, scale_grad_by_freq):
    """Return the gradient of a table of `count` rows from the gradients of selected rows."""
    if scale_grad_by_freq:
        ones = gt.ones_like(places, dtype=rows.dtype)
        taken = gt.zeros(count, dtype=rows.dtype).index_add(0, places, ones)
        rows = rows / taken[places].unsqueeze(1)
    if padding_idx >= 0:
        rows = gt.where((places == padding_idx).unsqueeze(1), 0, rows)
    return gt.zeros(count, rows.shape[1], dtype=rows.dtype).index_add(0, places, rows)


@kernel("embedding_dense_backward")
def embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    places = indices.reshape(-1).long()
    rows = grad_output.reshape(-1, grad_output.shape[-1])
    return grad_of_table(rows, places, num_weights, padding_idx, scale_grad_by_freq)


@kernel("_unique2")
def unique2(self, sorted=True, return_inverse=False, return_counts=False):
    return _padded(
        gt.unique(self, sorted, return_inverse, return_counts), return_inverse, return_counts
    )


@kernel("_unique")
def unique(self, sorted=True, return_inverse=False):
    return _padded(gt.unique(self, sorted, return_inverse), return_inverse, False)[:2]


@kernel("unique_dim")
def unique_dim(self, dim, sorted=True, return_inverse=False, return_counts=False):
    found = gt.unique(self, sorted, return_inverse, return_counts, dim)
    return _padded(found, return_inverse, return_counts)


@kernel("unique_dim_consecutive")
def unique_dim_consecutive(self, dim, return_inverse=False, return_counts=False):
    return unique_consecutive(self, return_inverse, return_counts, dim)


@kernel("unique_consecutive")
def unique_consecutive(self, return_inverse=False, return_counts=False, dim=None):
    found = gt.unique_consecutive(self, return_inverse, return_counts, dim)
    return _padded(found, return_inverse, return_counts)


@kernel("block_diag")
def block_diag(tensors):
    return gt.block_diag(*tensors)


def _padded(found, has_inverse, has_counts):
    """Return three tensors, with empty ones for those that were not requested."""
    found = list(found) if isinstance(found, tuple) else [found]
    none = gt.zeros(0, dtype=gt.int64)
    values, rest = found[0], iter(found[1:])
    return values, next(rest) if has_inverse else none, next(rest) if has_counts else none
