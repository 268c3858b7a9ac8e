"""Type stubs of the compiled module, and of the functions made from its methods.

Names, parameters, defaults and documentation come from the module itself; the tables below add what
it cannot say: types.
"""

import inspect
import sys

from gt import _gt, functional

AXIS, AXES = "_int | None", "_int | Sequence[_int] | None"
PATH = "str | PathLike[str] | None"
LIKE, DTYPE = "_TensorLike", "_DTypeLike | None"

#: Types of parameters by their names; `method.parameter` comes before `parameter`.
PARAMETERS = {
    "address": "str",
    "open_session.address": "str | None",
    "trace.address": "str | None",
    "top.address": "str | None",
    "alpha": "_Number | None",
    "top.alpha": "_float",
    "dpi": "_float",
    "format": "str | None",
    "height": "_float",
    "json": "_bool",
    "log": "str | PathLike[str]",
    "once": "_bool",
    "path": "str | PathLike[str]",
    "process": "_int | None",
    "seconds": "_float",
    "visualize.output": "str | PathLike[str]",
    "width": "_float",
    "approximate": "str",
    "args": "Any",
    "array": "Any",
    "attributes": "Any",
    "axes": "_int | Sequence[_int]",
    "axis": AXES,
    "backward": "str | None",
    "record_function.backward": "Callable[..., Sequence[Tensor | None]]",
    "depth": "_int",
    "differentiable": "Sequence[_bool]",
    "kept": "Sequence[_int]",
    "outputs": "Sequence[Tensor]",
    "hook": "Callable[[Tensor], Tensor | None]",
    "exception": "object",
    "compile": "_bool",
    "chunks": "_int",
    "closes": "_bool",
    "condition": LIKE,
    "copy": "_bool | None",
    "correction": "_int",
    "count": "_int",
    "create_graph": "_bool",
    "data": "Any",
    "diagonal": "_int",
    "dim": AXES,
    "dim0": AXIS,
    "dim1": AXIS,
    "dims": "_int | Sequence[_int]",
    "dtype": DTYPE,
    "enabled": "_bool",
    "end": "_Number | None",
    "end_dim": "_int",
    "file": "str",
    "fill_value": "_Number",
    "folder": "str",
    "given": "_DTypeLike",
    "gradient": "Tensor | None",
    "high": "_int | None",
    "index": "Tensor",
    "input": LIKE,
    "inputs": "Sequence[Tensor]",
    "backward.inputs": "Sequence[Tensor] | None",
    "insecure": "_bool",
    "keepdim": "_bool | None",
    "keepdims": "_bool",
    "key_file": PATH,
    "log_file": PATH,
    "limit": "_int | None",
    "low": "_int",
    "m": "_int | None",
    "mask": "Tensor",
    "max": f"{LIKE} | None",
    "min": f"{LIKE} | None",
    "n": "_int",
    "name": "str",
    "of": "str | None",
    "options": "Any",
    "on_ready": "Callable[[], object]",
    "operands": "Sequence[Any]",
    "other": LIKE,
    "arange_beside.other": "Tensor",
    "tensor_beside.other": "Tensor",
    "output": "Tensor",
    "rank": "_int",
    "requires_grad": "_bool",
    "shard": "tuple[list[_int] | None, list[tuple[str, _int, _int | None]]] | None",
    "retain_graph": "_bool | None",
    "role": "str | None",
    "seed": "_int",
    "shape": "_int | Sequence[_int]",
    "shapes": "Sequence[_int]",
    "size": "_int | Sequence[_int] | None",
    "source": "Tensor",
    "spec": "str",
    "split_size": "_int | Sequence[_int]",
    "src": "Tensor",
    "start": "_Number",
    "start_dim": "_int",
    "step": "_Number | None",
    "steps": "_int",
    "tensor": "Tensor",
    "tensors": "Sequence[Tensor]",
    "text": "str",
    "threads": "_int | None",
    "peer_host": "str | None",
    "backend": "str",
    "unbiased": "_bool | None",
    "value": "_Number",
    "worker_wait": "_float",
    "session": "OpenSession",
    "workers": "_int | None",
    "_memo": "Any",
    "masked_fill.value": LIKE,
    "flip.dims": "_int | Sequence[_int] | None",
    "cat.axis": AXIS,
    "cat.dim": AXIS,
    "chunk.axis": AXIS,
    "chunk.dim": AXIS,
    "cumsum.axis": AXIS,
    "cumsum.dim": AXIS,
    "gather.dim": "_int",
    "index_add.dim": "_int",
    "index_select.dim": "_int",
    "linspace.end": "_Number",
    "log_softmax.axis": AXIS,
    "log_softmax.dim": AXIS,
    "max.keepdim": "_bool",
    "max.keepdims": "_bool | None",
    "min.keepdim": "_bool",
    "min.keepdims": "_bool | None",
    "normalize_axis.axis": "_int",
    "scatter_add.dim": "_int",
    "size.dim": AXIS,
    "softmax.axis": AXIS,
    "softmax.dim": AXIS,
    "split.axis": AXIS,
    "split.dim": AXIS,
    "stack.axis": AXIS,
    "stack.dim": AXIS,
    "to.dtype": "_DTypeLike",
    "unsqueeze.axis": AXIS,
    "unsqueeze.dim": AXIS,
}

#: What methods, properties and functions give, where it is not a tensor.
RESULTS = {
    "T": "Tensor",
    "__array__": "NDArray[Any]",
    "__bool__": "_bool",
    "__dlpack__": "Any",
    "__enter__": "RemovableHandle",
    "__exit__": "None",
    "__dlpack_device__": "tuple[_int, _int]",
    "__float__": "_float",
    "__format__": "str",
    "__hash__": "_int",
    "__index__": "_int",
    "__int__": "_int",
    "__iter__": "Iterator[Tensor]",
    "__len__": "_int",
    "__repr__": "str",
    "__setitem__": "None",
    "__str__": "str",
    "backward": "None",
    "begin_explaining": "None",
    "end_explaining": "dict[str, Any]",
    "placements": "list[dict[str, Any]]",
    "set_strict": "_int | None",
    "broadcast_shapes": "tuple[_int, ...]",
    "chunk": "list[Tensor]",
    "connect": "None",
    "closed": "_bool",
    "number": "_int",
    "place": "str",
    "close": "None",
    "enter": "None",
    "leave": "None",
    "current_session": "OpenSession",
    "open_session": "OpenSession",
    "session_of": "OpenSession",
    "dim": "_int",
    "disconnect": "None",
    "dtype": "dtype",
    "after_fork_in_child": "None",
    "after_fork_in_parent": "None",
    "before_fork": "None",
    "end_process": "None",
    "get_tape": "list[dict[str, Any]]",
    "get_status": "dict[str, Any]",
    "top": "str",
    "trace": "tuple[_int, _int, str, str | None]",
    "visualize": "dict[str, Any]",
    "get_worker_stats": "dict[str, dict[str, Any]]",
    "gpu_workers": "None",
    "grad": "Tensor | None",
    "id": "_int",
    "is_floating_point": "_bool",
    "is_grad_enabled": "_bool",
    "is_leaf": "_bool",
    "is_tensor": "_bool",
    "item": "Any",
    "itemsize": "_int",
    "make_key": "str",
    "manual_seed": "None",
    "max": "Any",
    "min": "Any",
    "name": "str",
    "ndim": "_int",
    "normalize_axis": "_int",
    "numel": "_int",
    "numpy": "NDArray[Any]",
    "operations": "list[dict[str, Any]]",
    "parse_config": (
        "list[tuple[str, tuple[list[_int] | None, list[tuple[str, _int, _int | None]]] | None, "
        "str | None, _bool]]"
    ),
    "parse_dtype": "dtype",
    "record_function": "list[Tensor]",
    "register_hook": "RemovableHandle",
    "remove": "None",
    "retain_grad": "None",
    "requires_grad": "_bool",
    "register_signal": "None",
    "clear_signals": "None",
    "run_server": "None",
    "run_worker": "None",
    "set_grad_enabled": "_bool",
    "set_package_folder": "None",
    "shape": "tuple[_int, ...]",
    "signal_current": "tuple[str | None, str | None]",
    "signal_enter": "_int",
    "signal_unwind": "None",
    "signal_exit": "None",
    "size": "Any",
    "split": "list[Tensor]",
    "synchronize": "None",
    "tolist": "Any",
}
#: What gives a tensor is told apart by name: a function that is in neither list is a mistake.
TENSOR_FUNCTIONS = (
    "apply arange arange_beside as_tensor cat empty empty_like eye from_numpy full full_like "
    "linspace ones ones_like rand rand_like randint randint_like randn randn_like signal_tensor "
    "snapshot stack tensor tensor_beside where zeros zeros_like"
).split()
#: The function `grad` of the module is not the property of tensors.
FUNCTION_RESULTS = {
    **RESULTS,
    **dict.fromkeys(TENSOR_FUNCTIONS, "Tensor"),
    "grad": "list[Tensor | None]",
}

#: Properties that may be set, with what they take.
SETTABLE = {"data": "Tensor", "grad": "Tensor | None", "requires_grad": "_bool"}

#: What each operation gives, by its name.
OPERATION_DOCS = {operation["name"]: operation["doc"] for operation in _gt.operations()}

HIDDEN = ("__doc__", "__module__", "__new__", "__reduce__", "__delitem__", "__weakref__")

HEAD = '''"""The compiled part of GT. Generated by docs/generate.py."""

from builtins import bool as _bool
from builtins import float as _float
from builtins import int as _int
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Any, TypeAlias, final

import numpy as _numpy
from numpy.typing import NDArray

_Number: TypeAlias = _bool | _int | _float
_TensorLike: TypeAlias = Tensor | _Number | NDArray[Any] | _numpy.generic
_DTypeLike: TypeAlias = dtype | str | type[Any] | _numpy.dtype[Any]

__version__: str
'''

FUNCTIONAL_HEAD = '''"""Operations as functions. Generated by docs/generate.py."""

from builtins import bool as _bool
from builtins import int as _int
from collections.abc import Sequence
from typing import Any

from gt._gt import Tensor, _DTypeLike, _Number, _TensorLike
from gt._gt import cat as cat

'''


def signature(function, owner: str = "") -> str:
    """Write the parameters of a compiled function; `owner` stands before those of a method."""
    parameters, after_star = [owner] if owner else [], False
    for parameter in inspect.signature(function).parameters.values():
        name = parameter.name
        if name == "self":
            continue
        kind = PARAMETERS.get(f"{function.__name__}.{name}") or known(PARAMETERS, name)
        if parameter.kind is parameter.VAR_POSITIONAL:
            after_star = True
            parameters.append(f"*{name}: {kind}")
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            parameters.append(f"**{name}: {kind}")
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not after_star:
            after_star = True
            parameters.append("*")
        parameters.append(f"{name}: {kind}{default(parameter)}")
    return "(" + ", ".join(parameters) + ")"


def known(types: dict[str, str], name: str) -> str:
    """Look a type up."""
    if name not in types:
        sys.exit(f"no type is known for '{name}'\n  hint: add it to docs/stubs.py")
    return types[name]


def default(parameter: inspect.Parameter) -> str:
    """Write a parameter's default value."""
    if parameter.default is parameter.empty:
        return ""
    known = parameter.default is not ...
    return f" = {parameter.default!r}".replace("'", '"') if known else " = ..."


def operation_doc(thing) -> str:
    """Give what an operation says of itself, for a method or function that only runs it."""
    name = getattr(thing, "__name__", "")
    doc = OPERATION_DOCS.get(name.rstrip("_"), "")
    return f"In place: {doc}" if doc and name.endswith("_") else doc


def ending(thing, indent: str) -> list[str]:
    """Write what follows a signature: the documentation, or nothing."""
    first, *others = (inspect.getdoc(thing) or operation_doc(thing)).strip().split("\n")
    if not others:
        return [":", f'{indent}    """{first}"""'] if first else [": ..."]
    lines = [f"{indent}    {line}".rstrip() for line in others]
    return [":", f'{indent}    """{first}', *lines, f'{indent}    """']


def define(name: str, parameters: str, result: str, thing, indent: str = "") -> list[str]:
    """Write one function or method."""
    head, *body = ending(thing, indent)
    return [f"{indent}def {name}{parameters} -> {result}{head}", *body]


def operator(kind: type, name: str) -> str:
    """Write one of the methods that Python calls by itself."""
    result = RESULTS.get(name, "Tensor" if kind is _gt.Tensor else "_bool")
    if name in ("__array__", "__deepcopy__", "__dlpack__", "__exit__", "__format__"):
        # Where the module has documentation, it is about these names, not their use.
        return f"    def {name}{signature(getattr(kind, name), 'self')} -> {result}: ..."
    given = list(inspect.signature(getattr(kind, name)).parameters)[1:]
    of_any = kind is not _gt.Tensor or name in ("__eq__", "__ne__")
    other = "Any" if of_any else "_TensorLike"
    types = {"key": "Any", "mod": "None = None"}
    parameters = ["self", *(f"{item}: {types.get(item, other)}" for item in given)]
    parameters += ["/"] if given else []
    # Comparing gives a tensor, as in NumPy; `**=` takes no modulus.
    ignored = {"__eq__": "override", "__ne__": "override", "__ipow__": "misc"}
    remark = f"  # type: ignore[{ignored[name]}]" if name in ignored and result == "Tensor" else ""
    return f"    def {name}({', '.join(parameters)}) -> {result}: ...{remark}"


def class_stub(kind: type) -> list[str]:
    """Write a compiled class."""
    head, *body = ending(kind, "")
    lines = ["@final", f"class {kind.__name__}{head}", *body, ""]
    for name in sorted(set(vars(kind)) - set(HIDDEN)):
        member = vars(kind)[name]
        if inspect.isgetsetdescriptor(member):
            lines += ["    @property", *define(name, "(self)", result_of(name), member, "    ")]
            if name in SETTABLE:
                lines.append(f"    @{name}.setter")
                lines.append(f"    def {name}(self, value: {SETTABLE[name]}) -> None: ...")
        elif isinstance(member, float):
            lines.append(f"    {name}: _float")
        elif name.startswith("__"):
            lines.append(operator(kind, name))
        else:
            lines += define(name, signature(member, "self"), result_of(name), member, "    ")
    return [*lines, ""]


def result_of(name: str) -> str:
    """Say what a method or property gives."""
    return RESULTS.get(name, "Tensor")


def module_stub() -> str:
    """Write the stubs of the compiled module."""
    names = sorted(name for name in vars(_gt) if not name.startswith("__"))
    values = {name: getattr(_gt, name) for name in names}
    dtypes = [name for name, value in values.items() if isinstance(value, _gt.dtype)]
    lines = [HEAD, "__all__ = ["]
    lines += [f'    "{name}",' for name in _gt.__all__]
    lines += ["]", ""]
    lines += class_stub(_gt.dtype)
    lines += [f"{name}: dtype" for name in dtypes]
    head, *body = ending(_gt.WorkerError, "")
    lines += ["", f"class WorkerError({_gt.WorkerError.__bases__[0].__name__}){head}", *body, ""]
    lines += class_stub(_gt.RemovableHandle)
    lines += class_stub(_gt.OpenSession)
    lines += class_stub(_gt.Tensor)
    for name, value in values.items():
        if inspect.isbuiltin(value):
            lines += define(name, signature(value), known(FUNCTION_RESULTS, name), value)
    return "\n".join(lines) + "\n"


def functional_stub() -> str:
    """Write the stubs of gt.functional."""
    lines = ["__all__ = [", *(f'    "{name}",' for name in sorted(functional.__all__)), "]", ""]
    for name in sorted(functional.__all__):
        function = getattr(functional, name)
        if function is _gt.cat:
            lines.append(f"{name} = cat")
        elif function.__name__ != name:
            lines.append(f"{name} = {function.__name__}")
        elif hasattr(_gt.Tensor, name) and name != "numel":
            parameters = signature(getattr(_gt.Tensor, name), "input: _TensorLike")
            lines += define(name, parameters, result_of(name), function)
        else:
            given = [
                f"{item}: {PARAMETERS.get(item)}" for item in inspect.signature(function).parameters
            ]
            given = ["value: object"] if name == "is_tensor" else given
            lines += define(name, f"({', '.join(given)})", result_of(name), function)
    return FUNCTIONAL_HEAD + "\n".join(lines) + "\n"
