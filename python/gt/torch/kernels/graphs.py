"""View and creation operators as functions of GT tensors, for compiled graphs.

Eager programs implement these operators by strides and storages. Graphs change nothing in place, so
they use GT's functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gt

#: Operator name, with or without an overload -> function of GT tensors.
IN_GRAPHS: dict[str, Callable[..., Any]] = {
    "alias": lambda self: self,
    "clone": lambda self: self,
    "detach": lambda self: self,
    "lift_fresh_copy": lambda self: self,
    "view": lambda self, size: self.reshape(size),
    "_unsafe_view": lambda self, size: self.reshape(size),
    "reshape": lambda self, shape: self.reshape(shape),
    "expand": lambda self, size: self.expand(size),
    "permute": lambda self, dims: self.permute(dims),
    "t": lambda self: self.t(),
    "transpose.int": lambda self, dim0, dim1: self.transpose(dim0, dim1),
    "unsqueeze": lambda self, dim: self.unsqueeze(dim),
    "squeeze": lambda self: self.squeeze(),
    "squeeze.dim": lambda self, dim: self.squeeze(dim),
    "squeeze.dims": lambda self, dim: self.squeeze(tuple(dim)),
    "select.int": lambda self, dim, index: self.select(dim, index),
    "split.Tensor": lambda self, size, dim=0: gt.split(self, size, dim),
    "split_with_sizes": lambda self, sizes, dim=0: gt.split(self, list(sizes), dim),
    "unbind.int": lambda self, dim=0: gt.unbind(self, dim),
    "full": lambda size, value, dtype=None: gt.full(tuple(size), value, dtype=dtype),
    "zeros": lambda size, dtype=None: gt.zeros(tuple(size), dtype=dtype),
    "ones": lambda size, dtype=None: gt.ones(tuple(size), dtype=dtype),
    "empty.memory_format": lambda size, dtype=None: gt.zeros(tuple(size), dtype=dtype),
    "full_like": lambda self, value, dtype=None: gt.full_like(self, value, dtype=dtype),
    "zeros_like": lambda self, dtype=None: gt.zeros_like(self, dtype=dtype),
    "ones_like": lambda self, dtype=None: gt.ones_like(self, dtype=dtype),
    "new_zeros": lambda self, size, dtype=None: gt.zeros(tuple(size), dtype=dtype or self.dtype),
    "new_ones": lambda self, size, dtype=None: gt.ones(tuple(size), dtype=dtype or self.dtype),
    "arange": lambda end, dtype=None: gt.arange(end, dtype=dtype),
    "arange.start": lambda start, end, dtype=None: gt.arange(start, end, dtype=dtype),
    "arange.start_step": lambda start, end, step=1, dtype=None: gt.arange(
        start, end, step, dtype=dtype
    ),
    "_to_copy": lambda self, dtype=None: self if dtype is None else self.to(dtype),
}


def _slice(
    self: gt.Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> gt.Tensor:
    entries: list[Any] = [slice(None)] * self.ndim
    entries[dim] = slice(start, end, step)
    return self[tuple(entries)]


IN_GRAPHS["slice.Tensor"] = _slice
