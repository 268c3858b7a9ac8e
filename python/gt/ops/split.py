"""Splitting of a tensor along an axis into views."""

from __future__ import annotations

from collections.abc import Sequence

from gt._gt import Tensor
from gt.ops.annotations import Size
from gt.ops.registry import function, operation
from gt.ops.sizes import axis_of, method, need_axes

_parts, _chunks = Tensor.split, Tensor.chunk


@function
def split(tensor: Tensor, split_size_or_sections: Size, dim: int = 0) -> tuple[Tensor, ...]:
    """Split along an axis into parts of one length, the last perhaps shorter, or of given lengths.

    Args:
        tensor: the tensor.
        split_size_or_sections: the length of all parts but the last, or a list of the lengths.
        dim: the axis.

    Returns:
        Views of the tensor.

    >>> gt.split(gt.arange(5), 3)
    (tensor([0, 1, 2], dtype=int64), tensor([3, 4], dtype=int64))
    """
    need_axes("split", tensor, 1)
    if isinstance(split_size_or_sections, tuple | list):
        return split_with_sizes(tensor, split_size_or_sections, dim)
    return tuple(_parts(tensor, split_size_or_sections, dim))


def _split(self: Tensor, split_size: Size, dim: int = 0) -> tuple[Tensor, ...]:
    """Split along an axis into parts of one length, the last perhaps shorter, or of given lengths.

    >>> gt.arange(5).split([1, 4])
    (tensor([0], dtype=int64), tensor([1, 2, 3, 4], dtype=int64))
    """
    return split(self, split_size, dim)


_split.__name__ = "split"
method(_split)


@operation
def unsafe_split(tensor: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split along an axis into parts of one length: the same as `split`.

    >>> gt.unsafe_split(gt.arange(3), 2)
    (tensor([0, 1], dtype=int64), tensor([2], dtype=int64))
    """
    return split(tensor, split_size, dim)


@operation(aliases=("unsafe_split_with_sizes",))
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Split along an axis into parts of given lengths, which add up to the axis.

    >>> gt.split_with_sizes(gt.arange(3), [1, 2])
    (tensor([0], dtype=int64), tensor([1, 2], dtype=int64))
    """
    need_axes("split_with_sizes", input, 1)
    if min(split_sizes, default=0) < 0:
        raise ValueError(f"split_with_sizes: a length in {list(split_sizes)} is below 0")
    return tuple(_parts(input, list(split_sizes), dim))


@operation(aliases=("unsafe_chunk",))
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split along an axis into at most `chunks` parts of one length, the last perhaps shorter.

    Args:
        input: the tensor.
        chunks: the largest number of parts.
        dim: the axis.

    Returns:
        Views of the tensor.

    >>> gt.chunk(gt.arange(5), 2)
    (tensor([0, 1, 2], dtype=int64), tensor([3, 4], dtype=int64))
    """
    need_axes("chunk", input, 1)
    if chunks > 0 and input.shape[axis_of("chunk", dim, input.ndim)] == 0:
        return split_with_sizes(input, [0] * chunks, dim)
    return tuple(_chunks(input, chunks, dim))


@operation
def tensor_split(
    input: Tensor, indices_or_sections: Size | Tensor, dim: int = 0
) -> tuple[Tensor, ...]:
    """Split along an axis before each index, or into n parts, the first ones perhaps longer.

    Indices in a tensor are fetched: the shapes of the parts depend on them.

    Args:
        input: the tensor.
        indices_or_sections: the indices before which to split, or the number of parts.
        dim: the axis.

    Returns:
        Views of the tensor.

    >>> gt.tensor_split(gt.arange(5), 2)
    (tensor([0, 1, 2], dtype=int64), tensor([3, 4], dtype=int64))
    """
    need_axes("tensor_split", input, 1)
    given = indices_or_sections
    sections = given.tolist() if isinstance(given, Tensor) else given
    at = axis_of("tensor_split", dim, input.ndim)
    if isinstance(sections, tuple | list):
        cuts = [None, *sections, None]
        parts = zip(cuts[:-1], cuts[1:], strict=True)
        return tuple(input[(slice(None),) * at + (slice(*part),)] for part in parts)
    if sections < 1:
        raise RuntimeError(f"tensor_split: sections is {sections}, expected 1 or more")
    size, longer = divmod(input.shape[at], sections)
    return split_with_sizes(input, [size + (part < longer) for part in range(sections)], at)


@operation
def hsplit(input: Tensor, indices_or_sections: Size) -> tuple[Tensor, ...]:
    """Split the columns, or a vector, before each index or into n equal parts.

    >>> gt.hsplit(gt.arange(4), 2)
    (tensor([0, 1], dtype=int64), tensor([2, 3], dtype=int64))
    """
    need_axes("hsplit", input, 1)
    return _split_equally("hsplit", input, indices_or_sections, min(input.ndim - 1, 1))


@operation
def vsplit(input: Tensor, indices_or_sections: Size) -> tuple[Tensor, ...]:
    """Split the rows before each index or into n equal parts.

    >>> gt.vsplit(gt.eye(2), 2)[1]
    tensor([[0., 1.]], dtype=float32)
    """
    need_axes("vsplit", input, 2)
    return _split_equally("vsplit", input, indices_or_sections, 0)


@operation
def dsplit(input: Tensor, indices_or_sections: Size) -> tuple[Tensor, ...]:
    """Split axis 2 before each index or into n equal parts.

    >>> gt.dsplit(gt.ones(1, 2, 4), 2)[0].shape
    (1, 2, 2)
    """
    need_axes("dsplit", input, 3)
    return _split_equally("dsplit", input, indices_or_sections, 2)


def _split_equally(name: str, input: Tensor, parts: Size, dim: int) -> tuple[Tensor, ...]:
    if isinstance(parts, int) and (parts < 1 or input.shape[dim] % parts):
        raise RuntimeError(
            f"{name}: axis {dim} of shape {input.shape} is not divisible into {parts} parts"
        )
    return tensor_split(input, parts, dim)


@operation
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the slices along an axis, without that axis.

    >>> gt.unbind(gt.eye(2))
    (tensor([1., 0.], dtype=float32), tensor([0., 1.], dtype=float32))
    """
    need_axes("unbind", input, 1)
    at = axis_of("unbind", dim, input.ndim)
    if input.ndim == 1:
        return tuple(input)
    return tuple(input[(slice(None),) * at + (place,)] for place in range(input.shape[at]))
