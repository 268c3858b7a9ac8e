"""GT's counterparts of PyTorch's functions, found by name.

A function of PyTorch is looked up by its path: `torch.linalg.det` is `gt.linalg.det`, a method of
`torch.Tensor` is one of `gt.Tensor`. Functions of the operator database itself, which call PyTorch,
are rebuilt with `gt` in place of `torch`.
"""

import builtins
import contextlib
import functools
import types

import gt
import torch
from torch.testing._internal import common_utils, opinfo
from torch.testing._internal.common_methods_invocations import wrapper_set_seed

NAMESPACES = ("", "nn.functional", "linalg", "fft", "special", "masked", "signal.windows", "Tensor")
_NOT_TORCH = {"builtins", "typing", "math"}


class Missing(Exception):
    """GT lacks something."""


class _Overload:
    """A function of GT that is also each of its overloads: `gt.slice.Tensor`."""

    def __init__(self, function):
        self._function = function

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def __getattr__(self, name):
        return self


class _Aten:
    """`torch.ops.aten` for GT: its functions of the same names."""

    def __getattr__(self, name):
        return _Overload(find(name))


class _Torch:
    """`torch` for GT: the package `gt`, and `ops.aten`."""

    ops = types.SimpleNamespace(aten=_Aten())

    def __getattr__(self, name):
        return getattr(gt, name)


TORCH = _Torch()


def find(path: str):
    """Return GT's object at a path of PyTorch's, such as `nn.functional.relu`."""
    found = TORCH
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise Missing(f"gt.{path} is missing") from None
    return found


def _look_up(path: str):
    """Return PyTorch's object at a path, or None."""
    try:
        return functools.reduce(getattr, path.removeprefix("torch.").split("."), torch)
    except AttributeError:
        return None


@functools.cache
def _paths() -> dict[int, str]:
    """Return the path of each function and class of PyTorch, by its id."""
    paths = {}
    for namespace in NAMESPACES:
        holder = _look_up(namespace) if namespace else torch
        for name in dir(holder):
            value = getattr(holder, name, None)
            if callable(value) and getattr(value, "__module__", None) not in _NOT_TORCH:
                paths.setdefault(id(value), f"{namespace}.{name}" if namespace else name)
    return paths


def _plain_call(op, *args, **kwargs):
    """Call an operation without setting a seed, which the caller has done."""
    return op(*args, **kwargs)


# Replacements of helpers of the database, the same for GT and PyTorch.
_HELPERS = {
    id(wrapper_set_seed): _plain_call,
    id(common_utils.freeze_rng_state): contextlib.nullcontext,
    id(opinfo.core.SampleInput): opinfo.core.SampleInput,
}


def _names(code) -> set[str]:
    """Return the global names that a function and its nested functions may use."""
    inner = (_names(const) for const in code.co_consts if isinstance(const, types.CodeType))
    return set(code.co_names).union(*inner)


def _remake(function, translate, made: dict):
    """Return a copy of a Python function in which everything it refers to is translated."""
    if id(function) in made:
        return made[id(function)]
    names = _names(function.__code__)
    known = {"__builtins__": builtins}
    cells = tuple(
        types.CellType(translate(cell.cell_contents, made)) for cell in function.__closure__ or ()
    )
    again = types.FunctionType(
        function.__code__, known, function.__name__, function.__defaults__, cells
    )
    again.__kwdefaults__ = function.__kwdefaults__
    made[id(function)] = again
    known.update(
        {k: translate(v, made) for k, v in function.__globals__.items() if k in names},
    )
    return again


def _is_of_database(value) -> bool:
    module = getattr(value, "__module__", None) or ""
    return isinstance(value, types.FunctionType) and module.startswith("torch.testing")


def in_torch(value, made: dict | None = None):
    """Return a function of the database that does not set a seed."""
    made = {} if made is None else made
    if id(value) in _HELPERS:
        return _HELPERS[id(value)]
    if isinstance(value, functools.partial):
        return functools.partial(in_torch(value.func, made), *value.args, **value.keywords)
    return _remake(value, in_torch, made) if _is_of_database(value) else value


def in_gt(value, made: dict | None = None):
    """Return GT's counterpart of a PyTorch function, class or module; other values as they are.

    If GT lacks it, the result is a function that raises `Missing` when it is called.
    """
    made = {} if made is None else made
    if id(value) in _HELPERS:
        return _HELPERS[id(value)]
    if isinstance(value, functools.partial):
        args = [in_gt(arg, made) for arg in value.args]
        return functools.partial(in_gt(value.func, made), *args, **value.keywords)
    if _is_of_database(value):
        return _remake(value, in_gt, made)
    if isinstance(value, torch.nn.PairwiseDistance):
        distance = _find_later("nn.functional.pairwise_distance")
        return functools.partial(distance, p=value.norm, eps=value.eps, keepdim=value.keepdim)
    path = path_of(value)
    return value if path is None else _find_later(path)


def path_of(value) -> str | None:
    """Return the path of a function, class or module of PyTorch, or None."""
    if value is torch:
        return ""
    if isinstance(value, types.ModuleType) and value.__name__.startswith("torch."):
        return value.__name__.removeprefix("torch.")
    if isinstance(value, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return value._schema.name.removeprefix("aten::") if _has_schema(value) else value.__name__
    return _paths().get(id(value)) if callable(value) else None


def _has_schema(value) -> bool:
    return isinstance(value, torch._ops.OpOverload)


def _find_later(path: str):
    """Return GT's object at a path, or a function that raises `Missing`."""
    if not path:
        return TORCH
    try:
        return find(path)
    except Missing as error:
        return functools.partial(_raise, str(error))


def _raise(message: str, *args, **kwargs):
    raise Missing(message)


def function_of(op):
    """Return GT's counterpart of an entry's function."""
    if _look_up(op.name) is op.op:
        return find(op.name.removeprefix("torch."))
    return _found(op.op)


def face_of(variant):
    """Return GT's counterpart of an entry's method or in-place method."""
    try:
        return _found(variant)
    except Missing as error:
        name = str(error).removeprefix("gt.").removesuffix(" is missing")
        raise Missing(f"method missing: {name}") from None


def _found(value):
    """Return GT's counterpart; raise `Missing` at once if GT lacks it."""
    path = None if _is_of_database(value) else path_of(value)
    return in_gt(value) if path is None else find(path)
