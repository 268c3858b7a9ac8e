"""GT: eager tensors with autograd, on one laptop or a shared cluster.

    >>> import gt
    >>> a = gt.tensor([1, 2, 3, 4])
    >>> (a * 2).sum().item()
    20.0

Without a connection, the dispatcher and the workers run inside this process. After
`gt.connect("host:port")` the same code runs on the workers of that server; `with
gt.Session("host:port"):` does so for one block.
"""

import _frozen_importlib as _import_system
import os as _os
import sys as _sys
from _thread import get_ident as _get_ident

# What GT has because PyTorch has it stands in one folder: the files of gt.nn are in _compat/nn.
__path__.append(_os.path.join(_os.path.dirname(__file__), "_compat"))


class _Finder:
    """Finds modules of packages of `gt` that another thread is importing, and waits for it.

    It is a part of this file, and imports nothing, as a thread may need it in this moment. It finds
    modules of another name of `gt`, too, such as `torch.nn` after `sys.modules["torch"] = gt`.
    """

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> object:
        """Return a spec whose loader waits; None for other modules."""
        first, _, rest = name.partition(".")
        if first != "gt":
            same = rest and _sys.modules.get(first) is _sys.modules.get("gt", cls)
            return _import_system.ModuleSpec(name, cls) if same else None  # type: ignore[arg-type]
        if name == "gt._importing":
            return None
        package = name.rpartition(".")[0]
        spec = getattr(_sys.modules.get(package), "__spec__", None)
        lock = _import_system._module_locks.get(package)  # type: ignore[attr-defined]
        lock = lock and lock()
        if not getattr(spec, "_initializing", False) or not lock or lock.owner == _get_ident():
            return None
        return _import_system.ModuleSpec(name, cls)  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: _import_system.ModuleSpec) -> object:
        """Return the module of a spec, as `gt._importing` does."""
        from gt._importing import create_module

        return create_module(spec)

    @staticmethod
    def exec_module(module: object) -> None:
        """Do nothing: `create_module` gives the spec the module's own loader."""


# Before the other finders; and after them, for a thread that came before this line.
_sys.meta_path[:] = [_Finder, *_sys.meta_path, _Finder]  # type: ignore[list-item]

import typing as _typing  # noqa: E402
from math import e, inf, nan, pi  # noqa: E402
from typing import Any as _Any  # noqa: E402

try:
    from gt import _gt
except ImportError as error:
    raise ImportError(
        f"gt's compiled part cannot be loaded: {error}\n"
        "  hint: `make build` in a checkout, or `pip install .`"
    ) from error

_gt.add_package_folder(_os.path.dirname(__file__) + _os.sep)

from gt import amp, autograd, checkpoint, debug, func, random, safetensors, signal  # noqa: E402
from gt._compile import compile  # noqa: E402
from gt._device import device  # noqa: E402
from gt._environment import warn_of_unknown_variables as _warn_of_unknown_variables  # noqa: E402
from gt._formats import (  # noqa: E402
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    strided,
)
from gt._generator import Generator  # noqa: E402
from gt._gt import (  # noqa: E402
    OutOfMemoryError,
    Tensor,
    WorkerError,
    WorkerIndexError,
    __version__,
    attach,
    bfloat16,
    bool,
    complex64,
    complex128,
    connect,
    detach,
    disconnect,
    dtype,
    float16,
    float32,
    float64,
    from_numpy,
    int8,
    int16,
    int32,
    int64,
    rescale,
    synchronize,
    uint8,
)
from gt._legacy import *  # noqa: E402, F403
from gt._legacy import __all__ as _legacy_names  # noqa: E402
from gt._limits import finfo, iinfo  # noqa: E402
from gt._missing import LastFinder as _LastFinder  # noqa: E402
from gt._missing import why as _why  # noqa: E402
from gt._public import show_callers as _show_callers  # noqa: E402
from gt._questions import *  # noqa: E402, F403
from gt._questions import __all__ as _questions_names  # noqa: E402
from gt._settings import *  # noqa: E402, F403
from gt._settings import __all__ as _settings_names  # noqa: E402
from gt._size import Size  # noqa: E402
from gt.amp import GradScaler  # noqa: E402
from gt.amp.autocast_mode import (  # noqa: E402
    autocast,
    clear_autocast_cache,
    get_autocast_cpu_dtype,
    get_autocast_dtype,
    get_autocast_gpu_dtype,
    is_autocast_cache_enabled,
    is_autocast_cpu_enabled,
    is_autocast_enabled,
    set_autocast_cache_enabled,
    set_autocast_cpu_dtype,
    set_autocast_dtype,
    set_autocast_enabled,
    set_autocast_gpu_dtype,
)
from gt.autograd import (  # noqa: E402
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from gt.config import (  # noqa: E402
    ShardConfig,
    SignalConfig,
    get_config,
    get_signal_config,
    load_config,
    register_config,
)
from gt.formats import load, save  # noqa: E402
from gt.func import vmap  # noqa: E402
from gt.ops import *  # noqa: E402, F403
from gt.ops import __all__ as _operations  # noqa: E402
from gt.ops.custom import custom_op  # noqa: E402
from gt.random import (  # noqa: E402
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from gt.session.kept import keep, kept, unkeep  # noqa: E402
from gt.session.progress import progress  # noqa: E402
from gt.session.publications import *  # noqa: E402, F403
from gt.session.publications import __all__ as _publications_names  # noqa: E402
from gt.session.session import Session, current_session, gpu_workers, workers  # noqa: E402
from gt.session.status import Status, status  # noqa: E402
from gt.session.step import step  # noqa: E402
from gt.session.watch import Watch, watch  # noqa: E402

float = float32
double = float64
half = float16
long = int64
int = int32
short = int16
cfloat = complex64
cdouble = complex128
newaxis = None

__all__ = [
    "Generator",
    "GradScaler",
    "OutOfMemoryError",
    "Session",
    "ShardConfig",
    "SignalConfig",
    "Size",
    "Status",
    "Tensor",
    "Watch",
    "WorkerError",
    "WorkerIndexError",
    "__version__",
    "amp",
    "attach",
    "autocast",
    "autograd",
    "backends",
    "bfloat16",
    "bool",
    "cdouble",
    "cfloat",
    "channels_last",
    "channels_last_3d",
    "checkpoint",
    "clear_autocast_cache",
    "compile",
    "compiler",
    "complex128",
    "complex64",
    "connect",
    "contiguous_format",
    "cpu",
    "cuda",
    "current_session",
    "custom_op",
    "data",
    "debug",
    "default_generator",
    "demo",
    "detach",
    "device",
    "disconnect",
    "distributed",
    "distributions",
    "double",
    "dtype",
    "e",
    "enable_grad",
    "fft",
    "finfo",
    "float",
    "float16",
    "float32",
    "float64",
    "from_numpy",
    "func",
    "functional",
    "get_autocast_cpu_dtype",
    "get_autocast_dtype",
    "get_autocast_gpu_dtype",
    "get_config",
    "get_rng_state",
    "get_signal_config",
    "gpu_workers",
    "half",
    "iinfo",
    "inf",
    "inference_mode",
    "initial_seed",
    "int",
    "int16",
    "int32",
    "int64",
    "int8",
    "is_autocast_cache_enabled",
    "is_autocast_cpu_enabled",
    "is_autocast_enabled",
    "is_grad_enabled",
    "jit",
    "keep",
    "kept",
    "layout",
    "linalg",
    "load",
    "load_config",
    "long",
    "manual_seed",
    "masked",
    "memory_format",
    "nan",
    "newaxis",
    "nn",
    "no_grad",
    "optim",
    "pi",
    "preserve_format",
    "progress",
    "random",
    "register_config",
    "rescale",
    "return_types",
    "safetensors",
    "save",
    "seed",
    "set_autocast_cache_enabled",
    "set_autocast_cpu_dtype",
    "set_autocast_dtype",
    "set_autocast_enabled",
    "set_autocast_gpu_dtype",
    "set_grad_enabled",
    "set_rng_state",
    "short",
    "signal",
    "special",
    "status",
    "step",
    "strided",
    "synchronize",
    "testing",
    "uint8",
    "unkeep",
    "utils",
    "vmap",
    "watch",
    "workers",
    *_legacy_names,
    *_operations,
    *_publications_names,
    *_questions_names,
    *_settings_names,
]


def __dir__() -> list[str]:
    return sorted({*__all__, *_LATER})


#: Modules that are imported at their first use: few programs need them all.
_LATER = frozenset(
    """
    accelerator ao backends client cluster compiler cpu cuda data demo distributed distributions
    errors export fft functional futures fx hub jit linalg masked mps multiprocessing nested nn onnx
    optim overrides package profiler quantization quasirandom return_types serialization
    signals sparse special storage testing torch_version torchvision types utils version xpu
    """.split()
)

# fmt: off
if _typing.TYPE_CHECKING:
    from gt import (  # noqa: F401, I001
        accelerator, ao, backends, client, cluster, compiler, cpu, cuda, data, demo, distributed,
        distributions, errors, export, fft, functional, futures, fx, hub, jit, linalg, masked, mps,
        multiprocessing, nested, nn, onnx, optim, overrides, package, profiler, quantization,
        quasirandom, return_types, serialization, signals, sparse, special, storage, testing,
        torch_version, torchvision, types, utils, version, xpu,
    )
# fmt: on
else:

    def __getattr__(name: str) -> _Any:
        """Import a module of `_LATER`, or raise an error that suggests the closest name."""
        if name in _LATER or name in ("_dynamo", "_inductor"):
            import importlib as _importlib

            return _importlib.import_module(f"gt.{name}")
        import difflib as _difflib  # slow to import

        if name.startswith("_"):
            raise AttributeError(f"module 'gt' has no attribute '{name}'")
        reason = _why(name)
        if reason is not None:
            raise AttributeError(f"gt has no '{name}': {reason}")
        near = _difflib.get_close_matches(name, __all__, n=1)
        hint = f"\n  hint: gt.{near[0]}" if near else ""
        text = f"gt has no '{name}'; if PyTorch has it, GT does not have it yet{hint}"
        raise AttributeError(text)


_show_callers(globals())


try:
    _warn_of_unknown_variables()
    get_config().load_from_env()
except Exception as _error:
    # A bare `raise` adds no line of this file: the traceback ends at the user's import.
    _error.__traceback__ = None
    raise

from gt import integrations as _integrations  # noqa: E402

_integrations.install()

# `concurrent.futures.thread` and `logging` register handlers that take locks before a fork. GT's
# runs before them, and waits for calls in progress, which may need those locks.
import atexit as _atexit  # noqa: E402
import concurrent.futures.thread as _pools  # noqa: E402, F401
import logging as _logging  # noqa: E402, F401

_atexit.register(_gt.end_process)
_os.register_at_fork(
    before=_gt.before_fork,
    after_in_parent=_gt.after_fork_in_parent,
    after_in_child=_gt.after_fork_in_child,
)

_sys.meta_path.reverse()
_sys.meta_path[_sys.meta_path.index(_Finder)] = _LastFinder  # type: ignore[arg-type, call-overload]
_sys.meta_path.reverse()
