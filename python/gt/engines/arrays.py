"""Lowerings that the NumPy and JAX engines share.

Both libraries have the same functions under the same names; `xp` is `numpy` or `jax.numpy`.
Operands arrive in the dtypes that `gt.engines.promotion` chooses, attributes as keyword arguments.
Callers
convert the result to its declared dtype.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from gt.engines.engine import Function, Signature
from gt.engines.errors import division_by_zero, negative_power, out_of_range

#: Operation -> NumPy's name for it.
_NAMESAKES = {
    "tan": "tan",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "sinh": "sinh",
    "cosh": "cosh",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "log2": "log2",
    "log10": "log10",
    "exp2": "exp2",
    "atan2": "arctan2",
    "hypot": "hypot",
    "copysign": "copysign",
    "signbit": "signbit",
    "fmax": "fmax",
    "fmin": "fmin",
    "gcd": "gcd",
    "lcm": "lcm",
    "trunc": "trunc",
}

#: `require(fine, error)`: the step fails with `error()` unless all values of `fine` are true.
Require = Callable[[Any, Callable[[], Exception]], None]


def chosen(lowerings: Mapping[str, Function], signature: Signature) -> Function:
    """Return an operation's lowering; `pow` is bound to whether its exponent is a scalar."""
    function = lowerings[signature.operation]
    if signature.operation != "pow":
        return function
    return partial(function, by_number=isinstance(signature.operands[1], type))


def over(axes: Sequence[int], x: Any) -> tuple[int, ...]:
    """Return the axes of a reduction: all of them if none are given, and none for a 0-d array."""
    return tuple(axes) if axes and x.ndim else tuple(range(x.ndim))


def region(starts: Sequence[int], sizes: Sequence[int], steps: Sequence[int]) -> tuple[Any, ...]:
    """Return the slices that select a region."""
    parts = zip(starts, sizes, steps, strict=True)
    return tuple(slice(start, start + size * step, step) for start, size, step in parts)


def rows(x: Any, index: Any, axis: int) -> tuple[Any, ...]:
    """Return the NumPy index that selects whole rows along an axis."""
    return (slice(None),) * (axis % x.ndim) + (index,)


def places(xp: Any, index: Any, axis: int) -> tuple[Any, ...]:
    """Return the NumPy index equivalent to a pointwise (gather/scatter) index along an axis."""
    if index.ndim == 0:
        return ()
    grid: list[Any] = []
    for along, length in enumerate(index.shape):
        line = xp.arange(length).reshape([-1 if at == along else 1 for at in range(index.ndim)])
        grid.append(line)
    grid[axis] = index
    return tuple(grid)


def lowerings(xp: Any, require: Require, whole_power: Function) -> dict[str, Function]:
    """Return the lowerings of all primitives except erf and those that write into a copy.

    `whole_power` raises integers to non-negative integers of the same shape.
    """
    return {
        **_create(xp),
        **_elementwise(xp),
        **_whole_numbers(xp, require, whole_power),
        **_reduce(xp),
        **_rearrange(xp),
        **_index(xp, require),
    }


def _create(xp: Any) -> dict[str, Function]:
    def full(value: Any, size: Sequence[int]) -> Any:
        return xp.broadcast_to(value.reshape(()), tuple(size))

    def arange(start: Any, step: Any, length: int) -> Any:
        return start.reshape(()) + step.reshape(()) * xp.arange(length)

    def linspace(start: Any, end: Any, length: int) -> Any:
        """Compute each half from its own end, so that both ends are exact."""
        start, end = start.reshape(()), end.reshape(())
        step, place = (end - start) / max(length - 1, 1), xp.arange(length)
        return xp.where(2 * place < length, start + place * step, end - (length - 1 - place) * step)

    return {
        "full": full,
        "arange": arange,
        "linspace": linspace,
        "eye": lambda n, m: xp.eye(n, m),
    }


def _elementwise(xp: Any) -> dict[str, Function]:
    def rounding(function: Function) -> Function:
        return lambda x: function(x) if x.dtype.kind == "f" else x

    return {
        "cast": lambda x: x,
        "further": lambda results, index: results[index],
        "neg": xp.negative,
        "abs": xp.abs,
        # NaN has no sign.
        "sign": lambda x: xp.where(x > 0, 1, xp.where(x < 0, -1, 0)),
        "sgn": lambda x: xp.where(x == 0, 0, x / xp.abs(x)) if x.dtype.kind == "c" else xp.sign(x),
        "conj": xp.conj,
        "view_as_real": lambda x: xp.stack([x.real, x.imag], -1),
        "exp": xp.exp,
        "log": xp.log,
        "log1p": xp.log1p,
        "expm1": xp.expm1,
        "sqrt": xp.sqrt,
        "rsqrt": lambda x: 1 / xp.sqrt(x),
        "sin": xp.sin,
        "cos": xp.cos,
        "sigmoid": lambda x: 1 / (1 + xp.exp(-x)),
        "tanh": xp.tanh,
        **{name: getattr(xp, own) for name, own in _NAMESAKES.items()},
        # `x <= 0` is false for NaN, which passes through.
        "relu": lambda x: xp.where(x <= 0, xp.zeros_like(x), x),
        "floor": rounding(xp.floor),
        "ceil": rounding(xp.ceil),
        "round": rounding(xp.round),
        "logical_not": xp.logical_not,
        "bitwise_not": xp.invert,
        "isnan": xp.isnan,
        "add": xp.add,
        "sub": xp.subtract,
        "mul": xp.multiply,
        "div": xp.true_divide,
        "maximum": xp.maximum,
        "minimum": xp.minimum,
        "bitwise_and": xp.bitwise_and,
        "bitwise_or": xp.bitwise_or,
        "bitwise_xor": xp.bitwise_xor,
        "eq": xp.equal,
        "ne": xp.not_equal,
        "lt": xp.less,
        "le": xp.less_equal,
        "gt": xp.greater,
        "ge": xp.greater_equal,
        "logical_and": xp.logical_and,
        "logical_or": xp.logical_or,
        "logical_xor": xp.logical_xor,
        "where": xp.where,
        "clamp": lambda x, low, high: xp.minimum(xp.maximum(x, low), high),
        "mul_add": lambda a, b, c: xp.add(a, xp.multiply(b, c)),
    }


def _whole_numbers(xp: Any, require: Require, whole_power: Function) -> dict[str, Function]:
    """Return the lowerings of arithmetic that can fail for integers."""

    def dividing(function: Function) -> Function:
        def divide(a: Any, b: Any) -> Any:
            if b.dtype.kind != "f" and 0 not in a.shape:
                require(b != 0, division_by_zero)
            return function(a, b)

        return divide

    def power(base: Any, exponent: Any, by_number: bool) -> Any:
        if base.dtype.kind in "fc":
            return xp.power(base, exponent)
        if by_number:
            require(exponent >= 0, negative_power)
        base, exponent = xp.broadcast_arrays(base, exponent)
        below = exponent < 0
        result = whole_power(base, xp.where(below, xp.zeros_like(exponent), exponent))
        # To a negative power only 1 and -1 have an integer result; other bases yield 0.
        unit = xp.where(exponent % 2 == 0, base * base, base)
        return xp.where(below, xp.where(xp.abs(base) == 1, unit, xp.zeros_like(base)), result)

    return {
        "floor_divide": dividing(xp.floor_divide),
        "remainder": dividing(xp.remainder),
        "pow": power,
    }


def _reduce(xp: Any) -> dict[str, Function]:
    def reduction(function: Function) -> Function:
        return lambda x, dim, keepdim: function(x, axis=over(dim, x), keepdims=keepdim)

    def mean(x: Any, dim: Sequence[int], keepdim: bool) -> Any:
        # Unlike `xp.mean`, this does not warn when the mean of no elements is NaN.
        given = over(dim, x)
        count = math.prod(x.shape[axis] for axis in given)
        return x.sum(axis=given, keepdims=keepdim) / x.dtype.type(count)

    def place_of(function: Function) -> Function:
        def find(x: Any, dim: Sequence[int], keepdim: bool) -> Any:
            return function(x, axis=dim[0] if dim and x.ndim else None, keepdims=keepdim)

        return find

    return {
        "sum": reduction(xp.sum),
        "mean": mean,
        "prod": reduction(xp.prod),
        "amax": reduction(xp.max),
        "amin": reduction(xp.min),
        "argmax": place_of(xp.argmax),
        "argmin": place_of(xp.argmin),
        "any": reduction(xp.any),
        "all": reduction(xp.all),
        "cumsum": lambda x, dim: xp.cumsum(x, axis=dim) if x.ndim else x,
        "matmul": xp.matmul,
    }


def _rearrange(xp: Any) -> dict[str, Function]:
    def triangle(function: Function) -> Function:
        def cut(x: Any, diagonal: int) -> Any:
            # Diagonals outside the matrix are clamped: they may not fit an int32.
            rows, columns = x.shape[-2:]
            return function(x, k=min(max(diagonal, -rows), columns))

        return cut

    return {
        "reshape": lambda x, shape: x.reshape(tuple(shape)),
        "permute": lambda x, dims: xp.transpose(x, tuple(dims)),
        "expand": lambda x, size: xp.broadcast_to(x, tuple(size)),
        "place": lambda x: x,
        "flip": lambda x, dims: xp.flip(x, axis=over(dims, x)),
        "slice": lambda x, *varying, sizes, steps, starts=(): x[
            region(varying or starts, sizes, steps)
        ],
        "cat": lambda *tensors, dim: xp.concatenate(tensors, axis=dim),
        "tril": triangle(xp.tril),
        "triu": triangle(xp.triu),
    }


def _index(xp: Any, require: Require) -> dict[str, Function]:
    def gather(x: Any, index: Any, dim: int) -> Any:
        below(require, index, x.shape[dim] if x.ndim else 1)
        return x[places(xp, index, dim)]

    def index_select(x: Any, index: Any, dim: int) -> Any:
        below(require, index, x.shape[dim])
        return xp.take(x, index, axis=dim)

    def wrap_index(index: Any, length: int) -> Any:
        fine = (index >= -length) & (index < length)
        require(fine, partial(_culprit, index, fine, length))
        return xp.where(index < 0, index + length, index)

    return {"gather": gather, "index_select": index_select, "wrap_index": wrap_index}


def below(require: Require, index: Any, length: int) -> None:
    """Require all entries of an index to be in range for an axis of this length."""
    if length == 0 and index.size > 0:
        # Raise even while tracing: there is no element to compute with instead.
        raise out_of_range(int(index.reshape(-1)[0]), length)
    fine = (index >= 0) & (index < length)
    require(fine, partial(_culprit, index, fine, length))


def _culprit(index: Any, fine: Any, length: int) -> Exception:
    """Return the error that names the first entry that is out of range."""
    return out_of_range(int(index.reshape(-1)[fine.reshape(-1).argmin()]), length)
