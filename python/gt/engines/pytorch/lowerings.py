"""The exact PyTorch lowerings, on tensors that were converted to the right dtypes.

No function writes to its operands, waits for a GPU or depends on values, so that all functions can
be traced and compiled.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from gt.engines.arrays import over, region
from gt.engines.engine import Function
from gt.engines.errors import division_by_zero, negative_power
from gt.engines.native import OPERANDS
from gt.engines.pytorch.attention import ATTENTION
from gt.engines.pytorch.gradients import GRADIENTS
from gt.engines.pytorch.matrices import MATRICES
from gt.engines.pytorch.normalization import NORMALIZATION
from gt.engines.pytorch.sliding import conv_general, max_pool
from gt.engines.pytorch.values import below, culprit, require


def full(value: Tensor, size: Sequence[int]) -> Tensor:
    """Return a tensor filled with a number."""
    return value.reshape(()).expand(tuple(size))


def arange(start: Tensor, step: Tensor, length: int) -> Tensor:
    """Return numbers from `start` in steps."""
    return start.reshape(()) + step.reshape(()) * torch.arange(length, device=start.device)


def linspace(start: Tensor, end: Tensor, length: int) -> Tensor:
    """Return evenly spaced numbers; each half is computed from its end, so both ends are exact."""
    start, end = start.reshape(()), end.reshape(())
    place = torch.arange(length, device=start.device)
    step = (end - start) / max(length - 1, 1)
    return torch.where(2 * place < length, start + place * step, end - (length - 1 - place) * step)


def floor_divide(a: Tensor, b: Tensor) -> Tensor:
    """Divide and round down; integers must not be divided by zero."""
    if a.dtype.is_floating_point:
        return _floor_divide_floats(a, b)
    fits, minus = _divisor(a, b)
    return torch.where(minus, -a, torch.div(a, fits, rounding_mode="floor"))


def remainder(a: Tensor, b: Tensor) -> Tensor:
    """Return the remainder with the sign of b; integers must not be divided by zero."""
    if a.dtype.is_floating_point:
        rest = torch.fmod(a, b)
        return torch.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)
    fits, _ = _divisor(a, b)
    return torch.remainder(a, fits)


def fmod(a: Tensor, b: Tensor) -> Tensor:
    """Return the remainder with the sign of a; integers must not be divided by zero."""
    if a.dtype.is_floating_point:
        return torch.fmod(a, b)
    fits, _ = _divisor(a, b)
    return torch.fmod(a, fits)


def _floor_divide_floats(a: Tensor, b: Tensor) -> Tensor:
    """Divide through the exact remainder, as Python does."""
    rest = torch.fmod(a, b)
    quotient = (a - rest) / b
    quotient = torch.where((rest != 0) & ((b < 0) != (rest < 0)), quotient - 1, quotient)
    floor = quotient.floor()
    floor = torch.where(quotient - floor > 0.5, floor + 1, floor)
    floor = torch.where(quotient == 0, torch.copysign(torch.zeros_like(floor), a / b), floor)
    return torch.where(b == 0, a / b, floor)


def _divisor(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return a divisor with 0 and -1 replaced by 1, and where it was -1.

    CPUs trap on division by zero and on the lowest integer divided by -1.
    """
    if 0 not in a.shape:
        require(b != 0, division_by_zero)
    minus = b == -1 if b.dtype.is_signed else torch.zeros_like(b, dtype=torch.bool)
    return torch.where(minus | (b == 0), 1, b), minus


def power(base: Tensor, exponent: Tensor, by_number: bool) -> Tensor:
    """Raise to a power; integers cannot be raised to a negative number."""
    if not (base.dtype.is_floating_point or base.dtype.is_complex) and by_number:
        require(exponent >= 0, negative_power)
        exponent = exponent.clamp(min=0)
    return torch.pow(base, exponent)


def reduction(function: Function) -> Function:
    """Wrap a PyTorch reduction so that it takes GT's axes."""
    return lambda x, dim, keepdim: function(x, over(dim, x), keepdim=keepdim)


def place_of(function: Function) -> Function:
    """Wrap PyTorch's argmax or argmin so that it takes GT's axis, and bools."""

    def find(x: Tensor, dim: Sequence[int], keepdim: bool) -> Tensor:
        x = x.to(torch.uint8) if x.dtype is torch.bool else x
        return function(x, dim[0] if dim and x.ndim else None, keepdim=keepdim)

    return find


def topk(x: Tensor, dim: int, k: int, largest: bool) -> tuple[Tensor, Tensor]:
    """Return the top k, the first of equal values: on a GPU, PyTorch returns any of them."""
    if not x.is_cuda or not x.ndim:
        return torch.topk(x, k, dim, largest)
    values, places = torch.sort(x, dim=dim, descending=largest, stable=True)
    return values.narrow(dim, 0, k), places.narrow(dim, 0, k)


def product(x: Tensor, dim: Sequence[int], keepdim: bool) -> Tensor:
    """Multiply along each axis, the last first."""
    for axis in sorted((axis % x.ndim for axis in over(dim, x)), reverse=True):
        x = torch.prod(x, axis, keepdim=keepdim)
    return x


def spread(root: bool) -> Function:
    """Return the lowering of the variance, or of its square root."""
    function = torch.std if root else torch.var

    def compute(x: Tensor, dim: Sequence[int], keepdim: bool, correction: int) -> Tensor:
        along = over(dim, x)
        count = math.prod(x.shape[axis] for axis in along)
        if count > correction:
            return function(x, along, correction=correction, keepdim=keepdim)
        # The divisor is not positive, for which PyTorch would warn.
        total = torch.square(x - x.mean(along, keepdim=True)).sum(along, keepdim=keepdim)
        return (total * math.inf).sqrt() if root else total * math.inf

    return compute


def logsumexp(x: Tensor, dim: Sequence[int], keepdim: bool) -> Tensor:
    """Return the logarithm of the sum of exponentials."""
    return torch.logsumexp(x, over(dim, x), keepdim=keepdim) if x.ndim else x


def cut(
    x: Tensor,
    *varying: Tensor,
    sizes: Sequence[Any],
    steps: Sequence[Any],
    starts: Sequence[Any] = (),
) -> Tensor:
    """Return a region; if its starts vary, by selecting rows along each axis."""
    if not varying:
        return x[region(starts, sizes, steps)]
    for axis, line in _lines(x, varying, sizes, steps):
        x = torch.index_select(x, axis, line)
    return x


def slice_assign(
    x: Tensor,
    value: Tensor,
    *varying: Tensor,
    sizes: Sequence[Any],
    steps: Sequence[Any],
    starts: Sequence[Any] = (),
) -> Tensor:
    """Replace a region: slice axis by axis, then scatter back in reverse order."""
    parts, lines = [x], _lines(x, varying, sizes, steps) if varying else []
    for axis, line in lines:
        parts.append(torch.index_select(parts[-1], axis, line))
    axes = [] if varying else [at for at, size in enumerate(sizes) if size != x.shape[at]]
    limits = [(at, starts[at], starts[at] + sizes[at] * steps[at], steps[at]) for at in axes]
    for limit in limits:
        parts.append(torch.ops.aten.slice(parts[-1], *limit))
    out = value.expand(parts.pop().shape)
    for limit in reversed(limits):
        out = torch.slice_scatter(parts.pop(), out, *limit)
    for axis, line in reversed(lines):
        out = torch.index_copy(parts.pop(), axis, line, out)
    return out


def _lines(
    x: Tensor, starts: Sequence[Tensor], sizes: Sequence[Any], steps: Sequence[Any]
) -> list[tuple[int, Tensor]]:
    """Return the axes that are cut, each with the indices to select."""
    lines = []
    for axis, (start, size, step) in enumerate(zip(starts, sizes, steps, strict=True)):
        if size != x.shape[axis]:
            line = torch.arange(size, device=x.device) * step
            last = x.shape[axis] - max(size - 1, 0) * step - 1
            lines.append((axis, start.clamp(0, max(last, 0)) + line))
    return lines


def triangle(function: Function) -> Function:
    """Wrap PyTorch's tril or triu so that it takes any diagonal."""

    def cut(x: Tensor, diagonal: int) -> Tensor:
        rows, columns = x.shape[-2:]
        return function(x, min(max(diagonal, -rows), columns))

    return cut


def gather(x: Tensor, index: Tensor, dim: int) -> Tensor:
    """Return the values at an index."""
    return torch.gather(x, dim, below(index, x.shape[dim] if x.ndim else 1))


def scatter_add(x: Tensor, index: Tensor, source: Tensor, dim: int) -> Tensor:
    """Add values at an index."""
    return torch.scatter_add(x, dim, below(index, x.shape[dim] if x.ndim else 1), source)


def scatter(x: Tensor, index: Tensor, source: Tensor, dim: int) -> Tensor:
    """Replace values at an index."""
    index = below(index, x.shape[dim] if x.ndim else 1)
    # A scalar source is broadcast.
    source = source if source.ndim == x.ndim else source.expand(index.shape)
    return torch.scatter(x, dim, index, source)


def scatter_reduce(
    x: Tensor, index: Tensor, source: Tensor, dim: int, reduce: str, include_self: bool
) -> Tensor:
    """Combine values at an index."""
    index = below(index, x.shape[dim] if x.ndim else 1)
    return torch.scatter_reduce(x, dim, index, source, reduce, include_self=include_self)


def index_select(x: Tensor, index: Tensor, dim: int) -> Tensor:
    """Return rows."""
    return torch.index_select(x, dim, below(index, x.shape[dim]))


def index_add(x: Tensor, index: Tensor, source: Tensor, dim: int) -> Tensor:
    """Add rows."""
    return torch.index_add(x, dim, below(index, x.shape[dim]), source)


def masked_rows(x: Tensor, mask: Tensor, count: int) -> Tensor:
    """Return the rows for which a mask is true; with a static count PyTorch can compile it."""
    return x[torch.nonzero_static(mask, size=count).unbind(1)]


def masked_rows_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Replace the rows for which a mask is true."""
    places = torch.nonzero_static(mask, size=source.shape[0])
    return torch.index_put(x, places.unbind(1), source)


def index_copy(x: Tensor, index: Tensor, source: Tensor, dim: int) -> Tensor:
    """Replace rows. The last of equal indices wins, which GPUs do not guarantee."""
    index = below(index, x.shape[dim])
    if len(index) == 0:
        return x
    number = torch.arange(len(index), device=index.device)
    last = torch.full((x.shape[dim],), -1, device=index.device)
    last = torch.scatter_reduce(last, 0, index, number, "amax")
    chosen = torch.index_select(source, dim, last.clamp(min=0))
    row = [-1 if at == dim % x.ndim else 1 for at in range(x.ndim)]
    return torch.where((last >= 0).reshape(row), chosen, x)


def wrap_index(index: Tensor, length: int) -> Tensor:
    """Convert negative indices to positive ones."""
    fine = (index >= -length) & (index < length)
    require(fine, lambda: culprit(index, fine, length))
    return torch.where(fine, torch.where(index < 0, index + length, index), 0)


LOWERINGS: dict[str, Callable[..., Any]] = {
    "full": full,
    "arange": arange,
    "linspace": linspace,
    # Without operands the device is unknown: the engine passes it.
    "eye": torch.eye,
    "cast": lambda x: x,
    **MATRICES,
    "neg": torch.neg,
    "abs": torch.abs,
    "sign": torch.sign,
    "conj": torch.conj_physical,
    "view_as_complex": lambda x: torch.view_as_complex(x.contiguous()),
    "exp": torch.exp,
    "log": torch.log,
    "log1p": torch.log1p,
    "expm1": torch.expm1,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "sin": torch.sin,
    "cos": torch.cos,
    "erf": torch.erf,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "relu": torch.relu,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "round": torch.round,
    "logical_not": torch.logical_not,
    "bitwise_not": torch.bitwise_not,
    "isnan": torch.isnan,
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "floor_divide": floor_divide,
    "remainder": remainder,
    "pow": power,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "bitwise_and": torch.bitwise_and,
    "bitwise_or": torch.bitwise_or,
    "bitwise_xor": torch.bitwise_xor,
    "eq": torch.eq,
    "ne": torch.ne,
    "lt": torch.lt,
    "le": torch.le,
    "gt": torch.gt,
    "ge": torch.ge,
    "logical_and": torch.logical_and,
    "logical_or": torch.logical_or,
    "logical_xor": torch.logical_xor,
    "where": torch.where,
    "clamp": lambda x, low, high: torch.minimum(torch.maximum(x, low), high),
    "mul_add": lambda a, b, c: a + b * c,
    "sum": reduction(torch.sum),
    "mean": reduction(torch.mean),
    "prod": product,
    "amax": reduction(torch.amax),
    "amin": reduction(torch.amin),
    "argmax": place_of(torch.argmax),
    "argmin": place_of(torch.argmin),
    "var": spread(root=False),
    "std": spread(root=True),
    "any": reduction(torch.any),
    "all": reduction(torch.all),
    "cumsum": torch.cumsum,
    "conv_general": conv_general,
    "max_pool": max_pool,
    **ATTENTION,
    "reshape": torch.reshape,
    "permute": torch.permute,
    "expand": Tensor.expand,
    "place": lambda x: x,
    "flip": lambda x, dims: torch.flip(x, over(dims, x)),
    "slice": cut,
    "slice_assign": slice_assign,
    "cat": lambda *tensors, dim: torch.cat(tensors, dim),
    "tril": triangle(torch.tril),
    "triu": triangle(torch.triu),
    "gather": gather,
    "scatter_add": scatter_add,
    "index_select": index_select,
    "index_add": index_add,
    "index_copy": index_copy,
    "wrap_index": wrap_index,
    "nonzero": lambda x, count: torch.nonzero_static(x, size=count),
    "masked_rows": masked_rows,
    "masked_rows_scatter": masked_rows_scatter,
    "softmax": torch.softmax,
    "log_softmax": torch.log_softmax,
    "logsumexp": logsumexp,
    "gelu": functional.gelu,
    "silu": functional.silu,
    # Above the threshold the result is x, which is exact in float64 for x > 40.
    "softplus": lambda x: functional.softplus(x, threshold=40),
    "further": lambda results, index: results[index],
    "fmod": fmod,
    "sort": lambda x, dim, descending: torch.sort(x, dim=dim, descending=descending, stable=True),
    "topk": topk,
    "max_along": lambda x, dim: torch.max(x, dim, keepdim=True),
    "min_along": lambda x, dim: torch.min(x, dim, keepdim=True),
    "scatter": scatter,
    "scatter_reduce": scatter_reduce,
    **NORMALIZATION,
    **GRADIENTS,
}


def namesake(name: str) -> Callable[..., Any] | None:
    """Return PyTorch's function of the same name, or None if there is none."""
    function = getattr(torch, name, None) or getattr(torch.special, name, None)
    if function is None or name not in OPERANDS:
        return None

    def call(*operands: Tensor, **attributes: object) -> Any:
        if len(operands) == 1 and not attributes:
            return function(*operands)  # the parameter is named x or input
        return function(**dict(zip(OPERANDS[name], operands, strict=True)), **attributes)

    return call
