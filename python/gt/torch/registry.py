"""The registration of kernels: each PyTorch operator's GT function, by name or from a table.

The schema of a PyTorch operator has the names and types of its arguments. An operator that GT has
under the same name needs no more; `kernels` defines the others. In-place variants and those with
`out` are derived from the functional variant with the same schema.
"""

from __future__ import annotations

import functools
import pathlib
import sys
import types
from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import decomposition_table as _DECOMPOSITIONS

import gt
from gt._gt import primitives, torch_device
from gt.torch import extension, fallback, kernels, layouts
from gt.torch.kernels import KERNELS, OPTIONS, RAW, attention, memory

#: (prefix of PyTorch's operators, the GT module with their functions).
_NAMESPACES = (
    ("special_", gt.special),
    ("linalg_", gt.linalg),
    ("fft_", gt.fft),
    ("", gt),
    ("", gt.nn.functional),
)
_KEY = "PrivateUse1"
#: Prefixes of operators that depend on PyTorch's strides, which GT's functions do not receive.
_OF_VIEWS = ("as_strided_", "view_copy", "unfold_copy")
#: Views whose kernels are not in Python.
_IN_RUST = ("as_strided", "view", "_reshape_alias")
#: Operators of lists that pass numbers to operations unchanged.
_PASSING_LISTS = tuple(f"_foreach_{name}" for name in ("add", "mul", "div", "addcdiv", "addcmul"))
_libraries: list[torch.library.Library] = []


def register_all() -> None:
    """Register the kernels of all operators that the device implements."""
    kernels.load()
    made = {name: kernel_of(name) for name in _operators() if name not in _IN_RUST}
    found = {name: kernel for name, kernel in made.items() if kernel is not None}
    if extension.connect():
        _register_repeated(found)
    else:
        _register(found)
    attention.register()
    nested = _library("aten", "IMPL")
    for name in ("_nested_tensor_from_tensor_list", "_nested_view_from_buffer"):
        nested.impl(name, _refuse_nested, "AutogradPrivateUse1")
    rest = _library("_", "IMPL")
    rest.fallback(fallback.run, _KEY)
    for key in ("SparsePrivateUse1", "SparseCsrPrivateUse1"):
        rest.fallback(_refuse_sparse, key)


def _refuse_nested(*_args: Any, **_kwargs: Any) -> Any:
    """Raise `RuntimeError` for nested tensors: PyTorch would abort when it reads their sizes."""
    raise RuntimeError(
        "the device cluster has no nested tensors of layout torch.strided\n"
        "  hint: use layout=torch.jagged, or pad_sequence for an ordinary tensor"
    )


def _refuse_sparse(operator: torch._ops.OpOverload, *_args: Any, **_kwargs: Any) -> Any:
    """Raise `NotImplementedError` for an operator of sparse tensors."""
    raise NotImplementedError(
        f"{operator._schema.name}: the device cluster has no sparse tensors\n"
        "  hint: convert them by x.to_dense(), or keep them and their operators on the CPU"
    )


def _register(found: dict[str, Callable[..., Any]]) -> None:
    """Register the Python kernels, and the Rust kernels of views."""
    folder = pathlib.Path(torch.__file__).parent / "lib"
    suffix = "dylib" if sys.platform == "darwin" else "so"
    torch_device.register_views(str(folder / f"libtorch_cpu.{suffix}"))
    aten = _library("aten", "IMPL")
    for name, kernel in found.items():
        aten.impl(name, kernel, _KEY)


def _register_repeated(found: dict[str, Callable[..., Any]]) -> None:
    """Register the extension's kernels, and as their twins the Python kernels for new calls."""
    twins = _library("gt_cluster", "IMPL")
    for name, kernel in (found | _kernels_of_lists()).items():
        packet, _, overload = name.partition(".")
        schema = str(overload_of(name)._schema).removeprefix("aten::")
        passes = getattr(kernel, "passes_numbers", packet.rstrip("_") in _PASSING_LISTS)
        torch_device.register_repeated(packet, overload, schema, passes)
        twins.impl(name, kernel, _KEY)


def _kernels_of_lists() -> dict[str, Callable[..., Any]]:
    """Return the kernels of operators of lists: PyTorch's, which loop over the tensors.

    The instructions of all tensors are recorded and replayed as one call.
    """
    names = torch._C._dispatch_get_all_op_names()
    of_lists = [name.removeprefix("aten::") for name in names if name.startswith("aten::_foreach_")]
    one_by_one = torch._C.DispatchKeySet(torch._C.DispatchKey.CompositeExplicitAutograd)
    return {
        name: functools.partial(overload_of(name).redispatch, one_by_one)
        for name in of_lists
        if not name.endswith("out")
    }


def _library(namespace: str, kind: Any) -> torch.library.Library:
    """Return a library that stays registered for the lifetime of the process."""
    made = torch.library.Library(namespace, kind)
    _libraries.append(made)
    return made


def _operators() -> list[str]:
    """Return the names, with overloads, of operators that are not composites."""
    names = (
        name.removeprefix("aten::")
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("aten::")
    )
    return [
        name for name in names if name in RAW or not _has_kernel(name, "CompositeImplicitAutograd")
    ]


def _has_kernel(name: str, key: str) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", key)


def overload_of(name: str) -> torch._ops.OpOverload:
    """Return the operator of a name such as `add.Tensor`."""
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def kernel_of(name: str) -> Callable[..., Any] | None:
    """Return an operator's kernel, or None if GT has no function for it."""
    if name in RAW:
        return RAW[name]
    if name.startswith(_OF_VIEWS):
        return None
    operator = overload_of(name)
    written = [of for of in operator._schema.arguments if of.alias_info and of.alias_info.is_write]
    function = KERNELS.get(name, KERNELS.get(name.partition(".")[0]))
    if function is None and not _is_made_of_others(operator):
        function = function_of(_functional(operator, written))
    if function is None:
        return _decomposed(operator, written)
    is_first = written and not written[0].kwarg_only
    writes = "first" if is_first else [of.name for of in written] or None
    options = {
        "pointwise": torch.Tag.pointwise in operator.tags
        and name.partition(".")[0] not in layouts.RULES,
        "operation": _primitive(operator, function),
        **OPTIONS.get(function, {}),
    }
    if not (options["pointwise"] or written):
        options["layout"] = layouts.rule_of(operator, name)
    return torch_device.Kernel(operator._schema.name, function, writes=writes, **options)


def _decomposed(operator: torch._ops.OpOverload, written: list[Any]) -> Callable[..., Any] | None:
    """Return a kernel that decomposes an operator by PyTorch's rule, or None without one."""
    if _has_kernel(name_of(operator), "CompositeExplicitAutograd"):
        return None
    if not written:
        return _DECOMPOSITIONS.get(operator)
    functional = _functional(operator, written)
    if functional is None or overload_of(functional) not in _DECOMPOSITIONS:
        return None
    function = _DECOMPOSITIONS[overload_of(functional)]
    names = [of.name for of in written]

    def kernel(*args: Any, **kwargs: Any) -> Any:
        outs = [kwargs.pop(name) for name in names if name in kwargs] or [args[0]]
        made = function(*args, **kwargs)
        for out, result in zip(outs, made if isinstance(made, tuple) else [made], strict=True):
            if out.shape != result.shape and out is not args[0]:
                memory.resize_out(out, result.shape)
            out.copy_(result)
        return outs[0] if len(outs) == 1 else tuple(outs)

    return kernel


def _is_made_of_others(operator: torch._ops.OpOverload) -> bool:
    """Return whether PyTorch composes an operator of others: of `empty` and a fill, or views."""
    schema = operator._schema
    is_view = any(of.alias_info and not of.alias_info.is_write for of in schema.returns)
    changes_shape = torch.Tag.inplace_view in operator.tags
    return is_view or changes_shape or any(of.name == "device" for of in schema.arguments)


def _primitive(operator: torch._ops.OpOverload, function: Callable[..., Any]) -> str | None:
    """Return the primitive that a function issues if only operands are passed, or None."""
    if isinstance(function, types.BuiltinFunctionType):
        return function.__name__
    packet = operator._schema.name.removeprefix("aten::").rstrip("_")
    is_own = function is vars(gt).get(packet) and hasattr(primitives, packet)
    return packet if is_own else None


def function_of(name: str | None) -> Callable[..., Any] | None:
    """Return the function of GT tensors for a functional operator, or None."""
    if name is None:
        return None
    packet = name.partition(".")[0]
    found = KERNELS.get(name, KERNELS.get(packet))
    if found is not None:
        return found
    if packet.startswith("_") or "backward" in packet:
        return None
    for start, namespace in _NAMESPACES:
        if packet.startswith(start):
            # Not by getattr, because `gt.__getattr__` searches for similar names.
            found = vars(namespace).get(packet.removeprefix(start))
            if callable(found):
                return found
    return None


def _functional(operator: torch._ops.OpOverload, written: list[Any]) -> str | None:
    """Return the name of the functional variant of an operator."""
    packet = operator._schema.name.removeprefix("aten::")
    if not written:
        return name_of(operator)
    if packet.endswith("_") and not packet.endswith("__"):
        return _alike(operator, packet[:-1], set())
    return _alike(operator, packet, {of.name for of in written})


def name_of(operator: torch._ops.OpOverload) -> str:
    """Return an operator's name with its overload, such as `add.Tensor`."""
    schema = operator._schema
    name = schema.name.removeprefix("aten::")
    return f"{name}.{schema.overload_name}" if schema.overload_name else name


def _alike(operator: torch._ops.OpOverload, packet: str, without: set[str]) -> str | None:
    """Return the name of a packet's functional overload with the same arguments, or None."""
    wanted = _arguments(operator, without)
    for overload in _overloads(packet):
        found = overload_of(f"{packet}.{overload}" if overload else packet)
        writes = any(of.alias_info and of.alias_info.is_write for of in found._schema.arguments)
        if not writes and _arguments(found, set()) == wanted:
            return name_of(found)
    return None


def _arguments(operator: torch._ops.OpOverload, without: set[str]) -> list[tuple[str, str]]:
    return [(of.name, str(of.type)) for of in operator._schema.arguments if of.name not in without]


@functools.cache
def _overloads(packet: str) -> tuple[str, ...]:
    found = torch._C._jit_get_operation(f"aten::{packet}")
    return tuple(found[1] or ())
