"""Repetition of values along axes, and padding."""

from __future__ import annotations

import math

import gt
from gt._gt import Tensor, element_of, primitives
from gt.ops.annotations import Number, Size
from gt.ops.registry import function, operation
from gt.ops.sizes import axis_of, filled, ints, method, need_axes, need_index, one_by_one


@method
@one_by_one
def repeat(input: Tensor, repeats: Size) -> Tensor:
    """Repeat the whole tensor along each axis; additional axes are put in front.

    >>> gt.arange(2).repeat(2, 2)
    tensor([[0, 1, 0, 1],
            [0, 1, 0, 1]], dtype=int64)
    """
    repeats = ints(repeats)
    if len(repeats) < input.ndim or min(repeats, default=0) < 0:
        raise RuntimeError(
            f"repeat: repeats {repeats} must have a number of 0 or more for each axis of shape "
            f"{input.shape}"
        )
    input = input.reshape((1,) * (len(repeats) - input.ndim) + input.shape)
    for dim, times in enumerate(repeats):
        if times != 1:
            input = _repeated(input, dim, dim, times)
    return input.clone()


def _repeated(input: Tensor, dim: int, within: int, times: int) -> Tensor:
    """Repeat the block of the axes from `within` on, so that axis `dim` becomes longer."""
    shape = input.shape
    longer = (*shape[:dim], shape[dim] * times, *shape[dim + 1 :])
    before, block = math.prod(shape[:within]), math.prod(shape[within:])
    return input.reshape(before, 1, block).expand(before, times, block).reshape(longer)


@operation
@one_by_one
def tile(input: Tensor, dims: Size) -> Tensor:
    """Repeat the whole tensor along its last axes; additional axes are put in front.

    >>> gt.tile(gt.arange(2), (2,))
    tensor([0, 1, 0, 1], dtype=int64)
    """
    dims = ints(dims)
    return repeat(input, (1,) * (input.ndim - len(dims)) + dims)


@operation
def repeat_interleave(
    input: Tensor,
    repeats: int | Tensor | None = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> Tensor:
    """Repeat each value, or each slice along an axis, directly after itself.

    Args:
        input: the tensor; if it is the only argument, the number of repeats of 0, 1, ...
        repeats: the number of repeats, one for all or one for each slice. A tensor is fetched,
            unless `output_size` is given, since the shape of the result depends on it.
        dim: the axis; by default the tensor is flattened.
        output_size: the length of the axis in the result, the sum of the repeats.

    >>> gt.repeat_interleave(gt.arange(3), 2)
    tensor([0, 0, 1, 1, 2, 2], dtype=int64)
    """
    if repeats is None:
        need_axes("repeat_interleave", input, 1, 1)
        return _places(input, output_size)
    if dim is None:
        input, dim = input.ravel(), 0
    at = axis_of("repeat_interleave", dim, input.ndim)
    input = input.reshape(input.shape or 1)
    if isinstance(repeats, Tensor):
        need_axes("repeat_interleave", repeats, 0, 1)
        if repeats.numel() == 1:
            repeats = repeats.reshape(1).expand(input.shape[at])
        if repeats.shape[0] != input.shape[at]:
            raise RuntimeError(
                f"repeat_interleave: there are {repeats.shape[0]} repeats for axis {dim} of shape "
                f"{input.shape}"
            )
        return input.index_select(at, _places(repeats, output_size))
    if repeats < 0:
        raise RuntimeError(f"repeat_interleave: repeats is {repeats}, expected 0 or more")
    return _repeated(input, at, at + 1, repeats).clone()


def _places(repeats: Tensor, total: int | None) -> Tensor:
    """Return each of the numbers 0, 1, ... repeated as often as `repeats` holds for it."""
    need_index("repeat_interleave", repeats, "repeats")
    if repeats.numel() == 0:
        return repeats.long()
    ends = repeats.cumsum(0)
    if total is None:
        least, total = gt.stack([repeats.min().long(), ends[-1]]).tolist()
        if least < 0:
            raise RuntimeError(f"repeat_interleave: repeats contains {least}, expected 0 or more")
    steps = filled(ends, (total + 1,), 0).index_add(0, ends, filled(ends, ends.shape, 1))
    return steps.cumsum(0)[:total]


@function
def constant_pad_nd(input: Tensor, pad: Size, value: Number = 0) -> Tensor:
    """Pad axes with a number before and after their values.

    Args:
        input: the tensor.
        pad: the padding before and after, for the last axis first, then for the one before it, and
            so forth; negative padding removes values.
        value: the number.

    >>> gt.constant_pad_nd(gt.ones(2), (1, 2))
    tensor([0., 1., 1., 0., 0.], dtype=float32)
    """
    pad = ints(pad)
    if len(pad) % 2 or len(pad) > 2 * input.ndim:
        raise RuntimeError(
            f"constant_pad_nd: pad {pad} must have two numbers for each axis that is padded, "
            f"{2 * input.ndim} at most for shape {input.shape}"
        )
    rest = input.ndim - len(pad) // 2
    before = [0] * rest + list(reversed(pad[::2]))
    after = [0] * rest + list(reversed(pad[1::2]))
    size = [a + n + b for a, n, b in zip(before, input.shape, after, strict=True)]
    if min(size, default=0) < 0:
        raise RuntimeError(f"constant_pad_nd: pad {pad} removes more than shape {input.shape} has")
    steps, first = [1] * input.ndim, [max(-a, 0) for a in before]
    kept = [n + min(a, 0) + min(b, 0) for a, n, b in zip(before, input.shape, after, strict=True)]
    inside = primitives.slice(input, first, kept, steps)
    start = [max(a, 0) for a in before]
    return primitives.slice_assign(
        filled(input, size, element_of("pad", value, input.dtype)), inside, start, kept, steps
    )
