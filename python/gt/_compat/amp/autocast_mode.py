"""Blocks in which products are computed in a lower precision."""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Callable
from typing import Any

from gt import _gt
from gt._arguments import brief
from gt._lines import warn
from gt.ops.autocast import cast, set_lower, state

_KINDS = ("cluster", "cpu", "cuda", "hpu", "ipu", "mps", "mtia", "xla", "xpu")


class _Defaults(threading.local):
    """The default dtypes of `autocast` on this thread, by device."""

    def __init__(self) -> None:
        self.dtypes: dict[str, Any] = {"cuda": _gt.float16}


_defaults = _Defaults()


class autocast:
    """Compute products in a lower precision, as a `with` block or decorator.

    Matrix products, linear maps, convolutions and attention cast their floats to `dtype`. Softmax,
    losses, norms, sums, exponentials and logarithms, and linear algebra cast them to float32. Other
    operations compute in the dtypes of their operands, mixed ones in the wider. The lists are
    PyTorch's for CUDA, with linear algebra from those for CPUs; they are the same on all workers.

    Args:
        device_type: a device by PyTorch's name. All tensors are on the cluster, so that it only
            selects the default dtype: float16 for "cuda", else bfloat16.
        dtype: `gt.bfloat16` or `gt.float16`; another dtype disables autocast, with a warning.
        enabled: False turns autocast off in the block.
        cache_enabled: accepted for compatibility with PyTorch; it has no effect. No casts are
            cached: a weight that a block uses several times is cast each time.

    A backward pass computes in the dtypes of its forward pass, also inside a block. A block affects
    only its own thread.

    >>> with gt.autocast("cpu"):
    ...     product = gt.ones(2, 2) @ gt.ones(2, 2)
    >>> product.dtype
    gt.bfloat16
    """

    def __init__(
        self,
        device_type: str,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ):
        if not isinstance(device_type, str):
            raise ValueError(
                f"Expected `device_type` of type `str`, got: `{type(device_type)}`\n"
                '  hint: gt.autocast("cpu"), or another device: all are the cluster'
            )
        if not is_autocast_available(device_type):
            raise RuntimeError(
                f"User specified an unsupported autocast device_type '{device_type}'"
            )
        if not isinstance(enabled, (bool, int)):
            raise TypeError(f"enabled is {brief(enabled)}, expected True or False")
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else _float(dtype)
        if enabled and self.fast_dtype not in (_gt.bfloat16, _gt.float16):
            warn(
                f"autocast: the dtype is {self.fast_dtype.name}, expected bfloat16 or float16. "
                "Disabling autocast.",
            )
            enabled = False
        self._enabled = bool(enabled)
        self._before: list[Any] = []

    def __enter__(self) -> autocast:
        lower = set_lower(self.fast_dtype if self._enabled else None)
        self._before.append((lower, get_autocast_dtype(self.device)))
        _defaults.dtypes[self.device] = self.fast_dtype
        return self

    def __exit__(self, *exception: Any) -> None:
        lower, _defaults.dtypes[self.device] = self._before.pop()
        set_lower(lower)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a function."""
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}\n"
                "  hint: with gt.autocast(device_type=...): ..."
            )

        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            # Each call has a separate block: threads may call the function at the same time.
            block = copy.copy(self)
            block._before = []
            with block:
                return func(*args, **kwargs)

        return wrapped


def is_autocast_available(device_type: str) -> bool:
    """Return whether `autocast` supports a device's name.

    >>> gt.amp.is_autocast_available("cuda")
    True
    """
    return device_type in _KINDS


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Return whether autocast is on, on this thread; the same for all devices."""
    return state.lower is not None


def set_autocast_enabled(device_type: Any, enabled: bool | None = None) -> None:
    """Turn autocast on or off on this thread, until it is changed again.

    Args:
        device_type: the device whose default dtype is used; may be omitted.
        enabled: whether autocast is on.
    """
    if enabled is None:
        device_type, enabled = "cuda", device_type
    set_lower(get_autocast_dtype(device_type) if enabled else None)


def get_autocast_dtype(device_type: str) -> Any:
    """Return the dtype of `autocast` for a device: inside a block for it, the block's dtype.

    >>> gt.get_autocast_dtype("cpu")
    gt.bfloat16
    """
    return _defaults.dtypes.get(device_type, _gt.bfloat16)


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Set the dtype of `autocast` for a device on this thread, also where it is on already."""
    _defaults.dtypes[device_type] = _float(dtype)
    if state.lower is not None:
        set_lower(_defaults.dtypes[device_type])


def get_autocast_gpu_dtype() -> Any:
    """Return the dtype of `autocast` for "cuda": the older form of `get_autocast_dtype`."""
    return get_autocast_dtype("cuda")


def get_autocast_cpu_dtype() -> Any:
    """Return the dtype of `autocast` for "cpu": the older form of `get_autocast_dtype`."""
    return get_autocast_dtype("cpu")


def set_autocast_gpu_dtype(dtype: Any) -> None:
    """Set the dtype of `autocast` for "cuda": the older form of `set_autocast_dtype`."""
    set_autocast_dtype("cuda", dtype)


def set_autocast_cpu_dtype(dtype: Any) -> None:
    """Set the dtype of `autocast` for "cpu": the older form of `set_autocast_dtype`."""
    set_autocast_dtype("cpu", dtype)


def is_autocast_cpu_enabled() -> bool:
    """Return whether autocast is on, on this thread: the older form of `is_autocast_enabled`."""
    return is_autocast_enabled()


def is_autocast_cache_enabled() -> bool:
    """Return False: casts are not cached."""
    return False


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Do nothing: casts are not cached."""


def clear_autocast_cache() -> None:
    """Do nothing: casts are not cached."""


def _float(dtype: Any) -> Any:
    return _gt.parse_dtype(dtype)


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: Any = None
) -> Any:
    """Decorate `forward` of a `gt.autograd.Function` for use under autocast.

    Args:
        fwd: the method.
        device_type: a device by PyTorch's name.
        cast_inputs: a dtype to which float tensors are cast under autocast; `forward` then runs
            with autocast off. Without it, `forward` runs under autocast.
    """
    _check_device("custom_fwd", device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    forward = fwd

    @functools.wraps(forward)
    def wrapped(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        lower = state.lower
        ctx._forward_lower = lower if cast_inputs is None else None
        if cast_inputs is None or lower is None:
            return forward(ctx, *args, **kwargs)
        set_lower(None)
        try:
            return forward(ctx, *cast(args, cast_inputs), **cast(kwargs, cast_inputs))
        finally:
            set_lower(lower)

    return wrapped


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Decorate `backward` of a `gt.autograd.Function` to run under the autocast of its forward.

    Args:
        bwd: the method; `forward` must be decorated with `custom_fwd`.
        device_type: a device by PyTorch's name.
    """
    _check_device("custom_bwd", device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    backward = bwd

    @functools.wraps(backward)
    def wrapped(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        before = set_lower(ctx._forward_lower)
        try:
            return backward(ctx, *args, **kwargs)
        finally:
            set_lower(before)

    return wrapped


def _check_device(name: str, device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(
            f"{name}: Expected `device_type` of type `str`, got: `{type(device_type)}`"
        )
