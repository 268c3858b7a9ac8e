"""Sparse tensors of PyTorch programs, for which dense ones stand."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import gt
from gt._gt import Tensor
from gt._lines import warn
from gt.ops.annotations import DType
from gt.ops.create import creation
from gt.ops.registry import extend_tensor, function
from gt.ops.sizes import method


@function
@creation
def sparse_coo_tensor(
    indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: DType | None = None,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """Return a dense tensor with values at some positions, and a warning: GT has no sparse tensors.

    Values of the same position are added up; all others are 0.

    Args:
        indices: the positions, an axis of the tensor in each row.
        values: the value of each position.
        size: the shape; by default the smallest that has all positions.
        dtype: the dtype; by default that of `values`.
        check_invariants: accepted as in PyTorch; positions are always checked.
        is_coalesced: accepted as in PyTorch; it has no effect.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     gt.sparse_coo_tensor([[0, 1], [1, 0]], [3.0, 4.0], (2, 2))
    tensor([[0., 3.],
            [4., 0.]], dtype=float32)
    """
    places = gt.as_tensor(indices).long()
    values = gt.as_tensor(values, dtype=dtype)
    if places.ndim != 2 or places.shape[1:] != values.shape[:1]:
        raise ValueError(
            f"sparse_coo_tensor: indices have shape {places.shape} and values {values.shape}, "
            "expected (axes, count) and (count, ...)"
        )
    if size is None:
        size = ((places.amax(1) + 1).tolist(), values.shape[1:])
        size = (*size[0], *size[1])
    size = tuple(size)
    nbytes = math.prod(size) * values.dtype.itemsize
    warn(
        f"sparse_coo_tensor: GT has no sparse tensors; a dense one of {nbytes / 1e6:.1f} MB stands "
        "for it, with the same results",
    )
    dense = gt.zeros(size, dtype=values.dtype)
    return dense.index_put(tuple(places), values, accumulate=True)


@method
def coalesce(input: Tensor) -> Tensor:
    """Return the tensor itself: none is sparse, and values of one position are added up already.

    >>> gt.ones(1).coalesce()
    tensor([1.], dtype=float32)
    """
    return input


@method
def to_sparse(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Return the tensor itself, as GT has no sparse tensors.

    >>> gt.ones(1).to_sparse()
    tensor([1.], dtype=float32)
    """
    return input


def _lacking(name: str) -> property:
    """Return a property that raises an error: a dense tensor has no parts of a sparse one."""

    def refuse(tensor: Tensor) -> NoReturn:
        raise AttributeError(
            f"a tensor has no '{name}': GT has no sparse tensors, and gt.sparse_coo_tensor returns "
            "a dense one\n"
            "  hint: x.nonzero().T are the positions of the elements that are not 0, and x[x != 0] "
            "those elements"
        )

    return property(refuse)


for _name in ("ccol_indices", "col_indices", "crow_indices", "indices", "row_indices", "values"):
    extend_tensor(**{_name: _lacking(_name)})
