"""NumPy functions of tensors, with NumPy's arguments: `np.mean(x, axis=0, keepdims=True)`.

GT computes the functions that are listed here and returns a tensor, or fills `out`. NumPy's own
implementation computes the others: by the tensor's method of the same name, or from the values as
an array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gt
from gt._gt import Tensor, parse_dtype
from gt.ops.registry import extend_tensor

#: Parameters that only NumPy supports: with these, tensors are converted to arrays.
_NUMPY_ONLY = ("initial", "where")


def _as_dtype(tensor: Tensor, dtype: Any) -> Tensor:
    import numpy as np

    return tensor if dtype is None else tensor.to(parse_dtype(np.dtype(dtype).name))


def _floats(tensor: Tensor) -> Tensor:
    """Cast integers and bools to float64, as NumPy does for averages."""
    is_whole = not (tensor.is_floating_point() or tensor.is_complex())
    return tensor.double() if is_whole else tensor


def _over(axis: Any, tensor: Tensor) -> Any:
    return tuple(range(tensor.ndim)) if axis is None else axis


def _sum(x: Tensor, axis: Any, keepdims: bool, ddof: float) -> Tensor:
    return x.sum(axis, keepdim=keepdims)


def _mean(x: Tensor, axis: Any, keepdims: bool, ddof: float) -> Tensor:
    return _floats(x).mean(axis, keepdim=keepdims)


def _max(x: Tensor, axis: Any, keepdims: bool, ddof: float) -> Tensor:
    return x.amax(_over(axis, x), keepdim=keepdims)


def _min(x: Tensor, axis: Any, keepdims: bool, ddof: float) -> Tensor:
    return x.amin(_over(axis, x), keepdim=keepdims)


def _var(x: Tensor, axis: Any, keepdims: bool, ddof: float) -> Tensor:
    return _floats(x).var(axis, correction=ddof, keepdim=keepdims)


def _std(x: Tensor, axis: Any, keepdims: bool, ddof: float) -> Tensor:
    return _floats(x).std(axis, correction=ddof, keepdim=keepdims)


def _any(x: Tensor, axis: Any, keepdims: bool, ddof: float) -> Tensor:
    return x.bool().any(_over(axis, x), keepdim=keepdims)


def _all(x: Tensor, axis: Any, keepdims: bool, ddof: float) -> Tensor:
    return x.bool().all(_over(axis, x), keepdim=keepdims)


def _prod(x: Tensor, axis: Any, keepdims: bool, ddof: float) -> Tensor:
    axes = _over(axis, x)
    for one in sorted(a % x.ndim for a in ((axes,) if isinstance(axes, int) else axes))[::-1]:
        x = x.prod(one, keepdim=keepdims)
    return x


#: Functions that reduce axes, by NumPy's names.
_FOLDS: dict[str, Callable[[Tensor, Any, bool, float], Tensor]] = {
    "sum": _sum,
    "mean": _mean,
    "max": _max,
    "amax": _max,
    "min": _min,
    "amin": _min,
    "var": _var,
    "std": _std,
    "any": _any,
    "all": _all,
    "prod": _prod,
}


def _fold(name: str) -> Callable[..., Any]:
    def spread(
        a: Tensor,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        correction: float | None = None,
    ) -> Any:
        beside = ddof if correction is None else correction
        return _into(out, _FOLDS[name](_as_dtype(a, dtype), axis, keepdims, beside))

    def total(
        a: Tensor, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Any:
        return spread(a, axis, dtype, out, keepdims=keepdims)

    def extreme(a: Tensor, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        return spread(a, axis, None, out, keepdims=keepdims)

    if name in ("var", "std"):
        return spread
    return total if name in ("sum", "mean", "prod") else extreme


def _cumulative(name: str) -> Callable[..., Any]:
    def along(a: Tensor, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        x = _as_dtype(a, dtype)
        x, axis = (x.ravel(), 0) if axis is None else (x, axis)
        return _into(out, getattr(x, name)(axis))

    return along


def _place(name: str) -> Callable[..., Any]:
    def place(a: Tensor, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Any:
        return _into(out, getattr(a, name)(axis, keepdim=keepdims))

    return place


def _clip(
    a: Tensor,
    a_min: Any = None,
    a_max: Any = None,
    out: Any = None,
    *,
    min: Any = None,
    max: Any = None,
    dtype: Any = None,
) -> Any:
    a = _as_dtype(a, dtype)
    low, high = a_min if min is None else min, a_max if max is None else max
    result = a if low is None and high is None else gt.clamp(a, low, high)
    return _into(out, result)


def _round(a: Tensor, decimals: int = 0, out: Any = None) -> Any:
    if a.is_floating_point():
        return _into(out, a.round(decimals=decimals))
    if a.is_complex() or decimals < 0:
        import numpy as np

        return np.round(np.asarray(a), decimals, out)
    return _into(out, a.clone())


def _size(a: Tensor, axis: int | None = None) -> int:
    return a.numel() if axis is None else a.shape[axis]


def _flip(m: Tensor, axis: Any = None) -> Tensor:
    return m.flip(_over(axis, m))


def _transpose(a: Tensor, axes: Any = None) -> Tensor:
    return a.permute(tuple(range(a.ndim))[::-1] if axes is None else tuple(axes))


def _moveaxis(a: Tensor, source: Any, destination: Any) -> Tensor:
    return a.movedim(source, destination)


def _into(out: Any, result: Tensor) -> Any:
    """Return the result, or `out` after storing the result in it."""
    if out is None:
        return result
    if isinstance(out, Tensor):
        return out.copy_(result)
    import numpy as np

    np.copyto(out, np.asarray(result), casting="same_kind")
    return out


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _fold(name) for name in _FOLDS},
    "cumsum": _cumulative("cumsum"),
    "cumprod": _cumulative("cumprod"),
    "argmax": _place("argmax"),
    "argmin": _place("argmin"),
    "clip": _clip,
    "flip": _flip,
    "moveaxis": _moveaxis,
    "transpose": _transpose,
    "permute_dims": _transpose,
    "round": _round,
    "size": _size,
    "around": _round,
}


def _as_array(value: Any) -> Any:
    import numpy as np

    return np.asarray(value) if isinstance(value, Tensor) else value


def _array_function(self: Tensor, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Compute a NumPy function (NEP 18)."""
    own = _FUNCTIONS.get(function.__name__) if function.__module__ == "numpy" else None
    if own is not None and args and isinstance(args[0], Tensor):
        if not any(name in kwargs for name in _NUMPY_ONLY):
            return own(*args, **kwargs)
        args = tuple(_as_array(arg) for arg in args)
        kwargs = {name: _as_array(value) for name, value in kwargs.items()}
    return function._implementation(*args, **kwargs)


extend_tensor(__array_function__=_array_function)
