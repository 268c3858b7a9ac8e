"""Fast lowerings: operations for which one PyTorch call on unconverted operands is exact.

PyTorch promotes as GT does, but rounds numbers to 16-bit floats before it computes with them, and
rejects integers that are out of range. All other signatures use the exact form of `lowerings`.
"""

from typing import Any, TypeAlias

import torch

from gt.engines.engine import Function, Kind, Signature
from gt.engines.promotion import QUESTIONS, is_complex, is_float, taken_as
from gt.engines.pytorch.lowerings import LOWERINGS
from gt.engines.pytorch.values import DTYPES, fitting

Operands: TypeAlias = tuple[Kind | type, ...]

_HALVES = frozenset(("float16", "bfloat16"))
_SMALL = frozenset(("uint8", "int8", "int16", "int32"))
_WIDE = frozenset(("float32", "float64"))

#: Functions that promote operands of any dtypes.
_PROMOTING: dict[str, Function] = {
    **{
        name: LOWERINGS[name]
        for name in """neg abs sign relu floor ceil round logical_not bitwise_not isnan
        add sub mul maximum minimum bitwise_and bitwise_or bitwise_xor
        eq ne lt le gt ge logical_and logical_or logical_xor where""".split()
    },
    "floor_divide": torch.floor_divide,
    "remainder": torch.remainder,
}
#: Functions of operands of any floating-point dtypes.
_OF_FLOATS: dict[str, Function] = {
    name: LOWERINGS[name]
    for name in """exp log log1p expm1 sqrt rsqrt sin cos erf sigmoid tanh div""".split()
}
#: Operations that do not round a number to a 16-bit float first (in GT, `where` does round it).
_KEEPS_NUMBER = frozenset("add sub mul div where".split())
#: Operations whose PyTorch functions accept a number as the second operand.
_TAKES_NUMBER = frozenset("add sub mul div eq ne lt le gt ge remainder floor_divide".split())
#: PyTorch functions that reject a 0-d CPU tensor beside tensors on a GPU.
_ON_ONE_DEVICE = (torch.logical_and, torch.logical_or, torch.logical_xor)
#: Operations that round 16-bit floats in between: `rsqrt` for non-contiguous tensors, the others
#: for many elements.
_ROUNDS_TWICE = frozenset(
    "rsqrt softmax log_softmax softmax_backward log_softmax_backward gelu_backward".split()
)
#: Functions whose operands have the dtype of the result, including 16-bit floats.
_SAME: dict[str, Function] = {
    name: LOWERINGS[name]
    for name in """place reshape permute expand flip cat tril triu
    mean amax amin var std softmax log_softmax gelu silu softplus
    softmax_backward log_softmax_backward gelu_backward""".split()
}

#: Operations whose operands are not converted.
_AS_GIVEN = frozenset(("_attention", "_attention_backward"))


def direct(signature: Signature) -> Function | None:
    """Return a function of the unconverted operands, or None if there is none.

    Operations that can fail for some values rely on the checks that PyTorch makes on CPUs.
    """
    name, operands, output = signature.operation, signature.operands, signature.output
    if name in _ROUNDS_TWICE and output in _HALVES:
        return None
    if name in _PROMOTING:
        return _promoting(_PROMOTING[name], signature)
    if name in _OF_FLOATS and all(isinstance(o, type) or is_float(o.dtype) for o in operands):
        return _promoting(_OF_FLOATS[name], signature)
    if name in _SAME and all(_is(operand, output) for operand in operands):
        return _SAME[name]
    if name in _AS_GIVEN:
        return LOWERINGS[name]
    if name in _CHOSEN:
        return _CHOSEN[name](output, operands)
    return None


def _is(operand: Kind | type, dtype: str) -> bool:
    return isinstance(operand, Kind) and operand.dtype == dtype


def _promoting(function: Function, signature: Signature) -> Function | None:
    name, operands = signature.operation, signature.operands
    if name == "where" and not _is(operands[0], "bool"):
        return None
    tensors = operands[1:] if name == "where" else operands
    kinds = [operand for operand in tensors if isinstance(operand, Kind)]
    dtypes = {kind.dtype for kind in kinds}
    numbers = [at for at, operand in enumerate(operands) if isinstance(operand, type)]
    if not dtypes or (numbers and dtypes & _SMALL):
        return None
    if dtypes & _HALVES:
        alike = len(dtypes) == 1 and (name in QUESTIONS or signature.output in dtypes)
        has_axes = any(kind.has_axes for kind in kinds)
        if not alike or (numbers and not (has_axes and name in _KEEPS_NUMBER)):
            return None
    if not numbers:
        return function
    if numbers == [1] and name in _TAKES_NUMBER and dtypes <= _WIDE and bool not in operands:
        return function
    return _with_numbers(function, numbers, taken_as(signature))


def _with_numbers(function: Function, numbers: list[int], taken: tuple[Any, ...]) -> Function:
    """Wrap a function of tensors so that it converts numbers to 0-d tensors."""
    scalar = torch.scalar_tensor
    if len(taken) == 2:
        name = taken[numbers[0]]
        dtype, fit = DTYPES[name], fitting(name)
        if function in _ON_ONE_DEVICE and numbers == [1]:
            return lambda a, b: function(a, scalar(fit(b), dtype=dtype, device=a.device))
        if function in _ON_ONE_DEVICE:
            return lambda a, b: function(scalar(fit(a), dtype=dtype, device=b.device), b)
        if numbers == [1]:
            return lambda a, b: function(a, scalar(fit(b), dtype=dtype))
        return lambda a, b: function(scalar(fit(a), dtype=dtype), b)
    dtypes = {at: DTYPES[taken[at]] for at in numbers}

    def compute(*values: Any) -> torch.Tensor:
        return function(
            *(
                scalar(value, dtype=dtypes[at]) if at in dtypes else value
                for at, value in enumerate(values)
            )
        )

    return compute


def _cast(output: str, operands: Operands) -> Function | None:
    (x,), dtype = operands, DTYPES[output]
    if isinstance(x, type) or output == "bool":
        return lambda x: x.to(dtype)
    widens = is_complex(output) or is_float(output) and not is_complex(x.dtype)
    if (is_float(x.dtype) or is_complex(x.dtype)) and not widens:
        return None
    return lambda x: x.to(dtype)


def _sum(output: str, operands: Operands) -> Function:
    # PyTorch too sums integers as int64.
    return LOWERINGS["sum"]


def _slice(output: str, operands: Operands) -> Function:
    return cut


def cut(x: torch.Tensor, *varying: int, sizes: Any, steps: Any, starts: Any = ()) -> torch.Tensor:
    """Return a region as a view. Usually only one axis is cut, so axes are cut one by one."""
    starts = varying or starts
    for axis, (size, length) in enumerate(zip(sizes, x.shape, strict=True)):
        if size == length:
            continue
        start, step = starts[axis], steps[axis]
        if step == 1:
            x = x.narrow(axis, start, size)
        else:
            x = x[(slice(None),) * axis + (slice(start, start + size * step, step),)]
    return x


def _slice_assign(output: str, operands: Operands) -> Function | None:
    if not all(_is(operand, output) for operand in operands[:2]):
        return None
    return assigned


def assigned(
    x: torch.Tensor,
    value: torch.Tensor,
    *varying: int,
    sizes: Any,
    steps: Any,
    starts: Any = (),
) -> torch.Tensor:
    """Return a copy with a region replaced."""
    out = x.clone()
    cut(out, *varying, sizes=sizes, steps=steps, starts=starts).copy_(value)
    return out


def _product(function: Function) -> Any:
    """Use PyTorch's function for products of floats of one dtype."""

    def chosen(output: str, operands: Operands) -> Function | None:
        fits = is_float(output) and all(_is(operand, output) for operand in operands)
        return function if fits else None

    return chosen


def _pow(output: str, operands: Operands) -> Function | None:
    """Use PyTorch's powers by numbers, which are fast for small exponents."""
    x, exponent = operands
    fits = _is(x, output) and output not in _SMALL and exponent in (int, float)
    return torch.pow if fits else None


def _clamp(output: str, operands: Operands) -> Function | None:
    x, low, high = operands
    if not _is(x, output):
        return None
    if isinstance(low, Kind) and isinstance(high, Kind):
        return torch.clamp if low.dtype == high.dtype == output else None
    if isinstance(low, Kind) or isinstance(high, Kind) or output in _SMALL or bool in operands:
        return None
    return torch.clamp


def _mul_add(output: str, operands: Operands) -> Function | None:
    a, b, c = operands
    if not is_float(output) or not _is(a, output):
        return None
    if _is(b, output) and _is(c, output):
        return torch.addcmul
    if _is(b, output) and c in (int, float):
        return lambda a, b, c: torch.add(a, b, alpha=c)
    if _is(c, output) and b in (int, float):
        return lambda a, b, c: torch.add(a, c, alpha=b)
    return None


def _at_index(function: Function) -> Any:
    """Wrap a PyTorch function so that it takes the axis as `dim`."""
    adds = function in (torch.scatter_add, torch.index_add)

    def chosen(output: str, operands: Operands) -> Function | None:
        x, index, *rest = operands
        if not _is(index, "int64") or not all(_is(operand, output) for operand in [x, *rest]):
            return None
        if adds and output in _HALVES:  # each addition would round
            return None
        return lambda x, *rest, dim: function(x, dim, *rest)

    return chosen


_CHOSEN: dict[str, Any] = {
    "cast": _cast,
    "sum": _sum,
    "slice": _slice,
    "slice_assign": _slice_assign,
    "matmul": _product(torch.matmul),
    "weight_backward": _product(LOWERINGS["weight_backward"]),
    "pow": _pow,
    "clamp": _clamp,
    "mul_add": _mul_add,
    "gather": _at_index(torch.gather),
    "scatter_add": _at_index(torch.scatter_add),
    "index_select": _at_index(torch.index_select),
    "index_add": _at_index(torch.index_add),
    "index_copy": _at_index(torch.index_copy),
}
