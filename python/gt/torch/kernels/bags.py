"""Embedding bags, reductions of segments, and histograms."""

from __future__ import annotations

import gt
from gt.nn import functional as F
from gt.torch.kernels import kernel
from gt.torch.kernels.indexing import grad_of_table
from gt.torch.kernels.tape import vjp_of_first

_MODES = ("sum", "mean", "max")


def _bags(indices, offsets, include_last_offset):
    """Return the bag of each index, and the number of bags."""
    starts = offsets[:-1] if include_last_offset else offsets
    places = gt.arange(indices.shape[0], dtype=gt.int64)
    bags = gt.searchsorted(starts.long(), places, right=True) - 1
    return bags, starts.shape[0]


def _embedding_bag(
    weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx
):
    return F.embedding_bag(
        indices,
        weight,
        offsets,
        mode=_MODES[mode],
        per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset,
        padding_idx=None if padding_idx < 0 else padding_idx,
    )


@kernel("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(
    weight,
    indices,
    offsets,
    scale_grad_by_freq=False,
    mode=0,
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=-1,
):
    result = _embedding_bag(
        weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx
    )
    bags, count = _bags(indices, offsets, include_last_offset)
    counted = gt.ones_like(bags) if padding_idx < 0 else (indices != padding_idx).long()
    size = gt.zeros(count, dtype=gt.int64).index_add(0, bags, counted)
    return result, bags, size, _largest(weight, indices, bags, count, mode, padding_idx)


def _largest(weight, indices, bags, count, mode, padding_idx):
    """Return, for each bag and column, the index of the maximum; -1 for an empty bag."""
    if mode != 2:
        return gt.zeros(0, dtype=gt.int64)
    rows = weight[indices]
    counted = (indices != padding_idx).unsqueeze(1)
    rows = gt.where(counted, rows, -gt.inf)
    wide = bags.unsqueeze(1).expand(rows.shape)
    best = gt.full((count, rows.shape[1]), -gt.inf, dtype=rows.dtype)
    best = best.scatter_reduce(0, wide, rows, "amax")
    is_best = (rows == best[bags]) & counted
    none = indices.shape[0]
    places = gt.where(is_best, gt.arange(none, dtype=gt.int64).unsqueeze(1), none)
    first = gt.full((count, rows.shape[1]), none, dtype=gt.int64)
    first = first.scatter_reduce(0, wide, places, "amin")
    known = gt.cat([indices.long(), gt.full((1,), -1, dtype=gt.int64)])
    return known[first]


@kernel("_embedding_bag_dense_backward")
def embedding_bag_dense_backward(
    grad,
    indices,
    offset2bag,
    bag_size,
    maximum_indices,
    num_weights,
    scale_grad_by_freq,
    mode,
    per_sample_weights,
    padding_idx=-1,
):
    if mode == 2:
        zeros = gt.zeros(num_weights, grad.shape[1], dtype=grad.dtype)
        empty = maximum_indices < 0
        places = gt.where(empty, 0, maximum_indices)
        return zeros.scatter_add(0, places, gt.where(empty, 0, grad))
    rows = grad[offset2bag]
    if mode == 1:
        rows = rows / bag_size.clamp(min=1)[offset2bag].unsqueeze(1).to(rows.dtype)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    return grad_of_table(rows, indices, num_weights, padding_idx, scale_grad_by_freq)


@kernel("_embedding_bag_per_sample_weights_backward")
def embedding_bag_per_sample_weights_backward(
    grad, weight, indices, offsets, offset2bag, mode, padding_idx=-1
):
    found = (grad[offset2bag] * weight[indices]).sum(1)
    return found if padding_idx < 0 else gt.where(indices == padding_idx, 0, found)


@kernel("_embedding_bag_backward")
def embedding_bag_backward(grad, indices, offsets, *rest):
    offset2bag, bag_size, maximum_indices, count, scale_grad_by_freq, mode, _sparse, *more = rest
    return embedding_bag_dense_backward(
        grad, indices, offset2bag, bag_size, maximum_indices, count, scale_grad_by_freq, mode, *more
    )


#: Reduction -> (its name in `scatter_reduce`, the result for an empty segment).
_REDUCES = {
    "sum": ("sum", 0.0),
    "mean": ("sum", 0.0),
    "prod": ("prod", 1.0),
    "max": ("amax", -gt.inf),
    "min": ("amin", gt.inf),
}


@kernel("segment_reduce")
def segment_reduce(
    data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None
):
    ends = offsets[..., 1:] if lengths is None else lengths.cumsum(-1)
    counts = offsets.diff(dim=-1) if lengths is None else lengths
    length, segments = data.shape[axis], counts.shape[-1]
    places = gt.arange(length, dtype=ends.dtype).expand(*ends.shape[:-1], length)
    # Elements after the last segment go into an additional one, which is dropped.
    of = gt.searchsorted(ends, places, right=True)
    inner = [1] * (data.ndim - axis - 1)
    of = of.reshape(*of.shape, *inner).expand(data.shape)
    name, empty = _REDUCES[reduce]
    shape = (*data.shape[:axis], segments + 1, *data.shape[axis + 1 :])
    start = gt.full(shape, empty if initial is None else initial, dtype=data.dtype)
    found = start.scatter_reduce(axis, of, data, name).narrow(axis, 0, segments)
    if reduce != "mean":
        return found
    counts = counts.reshape(*counts.shape, *inner).to(data.dtype)
    if initial is None:
        return found / counts
    return gt.where(counts == 0, found, found / counts)


@kernel("_segment_reduce_backward")
def segment_reduce_backward(
    grad, output, data, reduce, *, lengths=None, offsets=None, axis=0, initial=None
):
    def forward(x):
        return segment_reduce(
            x, reduce, lengths=lengths, offsets=offsets, axis=axis, initial=initial
        )

    return vjp_of_first(forward, grad, data)


@kernel("_histogramdd_bin_edges")
def histogramdd_bin_edges(self, bins, *, range=None, weight=None, density=False):
    return list(gt.histogramdd(self, bins, range=range, weight=weight, density=density)[1])


@kernel("_histogramdd_from_bin_cts")
def histogramdd_from_bin_cts(self, bins, *, range=None, weight=None, density=False):
    return gt.histogramdd(self, bins, range=range, weight=weight, density=density)[0]


@kernel("_histogramdd_from_bin_tensors")
def histogramdd_from_bin_tensors(self, bins, *, weight=None, density=False):
    return gt.histogramdd(self, bins, weight=weight, density=density)[0]


@kernel("histc")
def histc(self, bins=100, min=0, max=0):
    # Integers are supported, as on a GPU.
    if self.is_floating_point():
        return gt.histc(self, bins, min, max)
    return gt.histc(self.double(), bins, min, max).to(self.dtype)
