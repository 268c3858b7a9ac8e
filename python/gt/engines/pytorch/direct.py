"""The short way: operations that PyTorch does on the operands as they come, in one call.

PyTorch promotes as GT does, but rounds numbers to 16-bit floats before it computes with them, and
knows no integers beyond their range. Where nothing here fits, the exact form of `lowerings` does.
"""

from functools import partial
from typing import Any

import torch

from gt.engines.arrays import region
from gt.engines.engine import Function, Meta, Operand, Step
from gt.engines.promotion import QUESTIONS, is_complex, is_float, taken_as
from gt.engines.pytorch.lowerings import LOWERINGS, slice_assign
from gt.engines.pytorch.values import DTYPES

_HALVES = frozenset(("float16", "bfloat16"))
_SMALL = frozenset(("uint8", "int8", "int16", "int32"))

#: Functions of operands of any dtypes.
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
#: Functions of floats, of any.
_OF_FLOATS: dict[str, Function] = {
    name: LOWERINGS[name]
    for name in """exp log log1p expm1 sqrt rsqrt sin cos erf sigmoid tanh div""".split()
}
#: These do not round a number to a 16-bit float first; of `where` GT asks it.
_KEEPS_NUMBER = frozenset("add sub mul div where".split())
#: These round 16-bit floats on the way: `rsqrt` where values do not lie one after another, the
#: others where there are many.
_ROUNDS_TWICE = frozenset(("rsqrt", "softmax", "log_softmax"))
#: Functions of operands in the dtype of the result, be it a 16-bit float.
_SAME: dict[str, Function] = {
    name: LOWERINGS[name]
    for name in """place reshape permute expand flip cat tril triu
    mean amax amin var std softmax log_softmax gelu silu softplus""".split()
}


def direct(
    step: Step, operands: tuple[Operand, ...], attributes: dict[str, Any]
) -> Function | None:
    """Give a function that takes a step's operands as they are, or None if there is none.

    Of what looks at values, PyTorch's own checks are relied on, which it makes on CPUs.
    """
    name, output = step.operation, step.output.dtype
    if name in _ROUNDS_TWICE and output in _HALVES:
        return None
    if name in _PROMOTING:
        return _promoting(_PROMOTING[name], step, operands)
    if name in _OF_FLOATS and all(not isinstance(o, Meta) or is_float(o.dtype) for o in operands):
        return _promoting(_OF_FLOATS[name], step, operands)
    if name in _SAME and all(_is(operand, output) for operand in operands):
        return partial(_SAME[name], **attributes) if attributes else _SAME[name]
    if name in _CHOSEN:
        return _CHOSEN[name](output, operands, attributes)
    return None


def _is(operand: Operand, dtype: str) -> bool:
    return isinstance(operand, Meta) and operand.dtype == dtype


def _promoting(function: Function, step: Step, operands: tuple[Operand, ...]) -> Function | None:
    name = step.operation
    if name == "where" and not _is(operands[0], "bool"):
        return None
    tensors = operands[1:] if name == "where" else operands
    dtypes = {operand.dtype for operand in tensors if isinstance(operand, Meta)}
    numbers = [at for at, operand in enumerate(operands) if not isinstance(operand, Meta)]
    if not dtypes or (numbers and dtypes & _SMALL):
        return None
    if dtypes & _HALVES:
        alike = len(dtypes) == 1 and (name in QUESTIONS or step.output.dtype in dtypes)
        has_axes = any(isinstance(operand, Meta) and operand.shape for operand in tensors)
        if not alike or (numbers and not (has_axes and name in _KEEPS_NUMBER)):
            return None
    return _with_numbers(function, numbers, taken_as(step, operands)) if numbers else function


def _with_numbers(function: Function, numbers: list[int], taken: tuple) -> Function:
    """Let a function of tensors take numbers, as tensors without axes."""
    scalar = torch.scalar_tensor
    if len(taken) == 2:
        dtype = DTYPES[taken[numbers[0]]]
        if numbers == [1]:
            return lambda a, b: function(a, scalar(b, dtype=dtype))
        return lambda a, b: function(scalar(a, dtype=dtype), b)
    dtypes = {at: DTYPES[taken[at]] for at in numbers}

    def compute(*values: Any) -> torch.Tensor:
        return function(
            *(
                scalar(value, dtype=dtypes[at]) if at in dtypes else value
                for at, value in enumerate(values)
            )
        )

    return compute


def _cast(output: str, operands: tuple[Operand, ...], _: dict[str, Any]) -> Function | None:
    (x,), dtype = operands, DTYPES[output]
    if not isinstance(x, Meta) or output == "bool":
        return lambda x: x.to(dtype)
    widens = is_complex(output) or is_float(output) and not is_complex(x.dtype)
    if (is_float(x.dtype) or is_complex(x.dtype)) and not widens:
        return None
    return lambda x: x.to(dtype)


def _sum(output: str, operands: tuple[Operand, ...], attributes: dict[str, Any]) -> Function:
    # Integers become int64 here, too.
    return partial(LOWERINGS["sum"], **attributes)


def _slice(output: str, operands: tuple[Operand, ...], lists: dict[str, Any]) -> Function:
    if "starts" in lists:
        place = region(**lists)
        return lambda x: x[place]
    return lambda x, *starts: x[region(starts, **lists)]


def _slice_assign(
    output: str, operands: tuple[Operand, ...], lists: dict[str, Any]
) -> Function | None:
    if not all(_is(operand, output) for operand in operands[:2]):
        return None
    return lambda x, value, *varying: slice_assign(x, value, **{"starts": varying, **lists})


def _matmul(output: str, operands: tuple[Operand, ...], _: dict[str, Any]) -> Function | None:
    fits = is_float(output) and all(_is(operand, output) for operand in operands)
    return torch.matmul if fits else None


def _pow(output: str, operands: tuple[Operand, ...], _: dict[str, Any]) -> Function | None:
    """Raise to a number, which PyTorch does fast for small ones."""
    x, exponent = operands
    fits = _is(x, output) and output not in _SMALL and exponent in (int, float)
    return torch.pow if fits else None


def _clamp(output: str, operands: tuple[Operand, ...], _: dict[str, Any]) -> Function | None:
    x, low, high = operands
    if not _is(x, output):
        return None
    if isinstance(low, Meta) and isinstance(high, Meta):
        return torch.clamp if low.dtype == high.dtype == output else None
    if isinstance(low, Meta) or isinstance(high, Meta) or output in _SMALL or bool in operands:
        return None
    return torch.clamp


def _mul_add(output: str, operands: tuple[Operand, ...], _: dict[str, Any]) -> Function | None:
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
    """Let a function of PyTorch's take an axis as GT names it."""
    adds = function in (torch.scatter_add, torch.index_add)

    def chosen(output: str, operands: tuple[Operand, ...], attributes: dict) -> Function | None:
        axis, (x, index, *rest) = attributes["dim"], operands
        if not _is(index, "int64") or not all(_is(operand, output) for operand in [x, *rest]):
            return None
        if adds and output in _HALVES:  # the sum of many would be rounded many times
            return None
        return lambda x, *rest: function(x, axis, *rest)

    return chosen


_CHOSEN: dict[str, Any] = {
    "cast": _cast,
    "sum": _sum,
    "slice": _slice,
    "slice_assign": _slice_assign,
    "matmul": _matmul,
    "pow": _pow,
    "clamp": _clamp,
    "mul_add": _mul_add,
    "gather": _at_index(torch.gather),
    "scatter_add": _at_index(torch.scatter_add),
    "index_select": _at_index(torch.index_select),
    "index_add": _at_index(torch.index_add),
    "index_copy": _at_index(torch.index_copy),
}
