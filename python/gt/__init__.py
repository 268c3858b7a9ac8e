"""GT: eager tensors with autograd, on one laptop or a shared cluster.

    >>> import gt
    >>> a = gt.tensor([1, 2, 3, 4])
    >>> (a * 2).sum().item()
    20.0

Without a connection, dispatcher and workers run inside this process. `gt.connect("host:port")`
uses a server instead; the same code then runs on its workers. `with gt.Session("host:port"):` does
so for a block.
"""

import os as _os

try:
    from gt import _gt
except ImportError as error:
    raise ImportError(
        f"gt's compiled part cannot be loaded: {error}\n"
        "  hint: `make build` in a checkout, or `pip install .`"
    ) from error

_gt.set_package_folder(_os.path.dirname(__file__) + _os.sep)

from gt import autograd, debug, nn, optim, signal  # noqa: E402
from gt._gt import (  # noqa: E402
    Tensor,
    WorkerError,
    __version__,
    arange,
    as_tensor,
    bfloat16,
    bool,
    cat,
    connect,
    disconnect,
    dtype,
    empty,
    empty_like,
    eye,
    float16,
    float32,
    float64,
    from_numpy,
    full,
    full_like,
    gpu_workers,
    int8,
    int16,
    int32,
    int64,
    linspace,
    manual_seed,
    ones,
    ones_like,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    stack,
    synchronize,
    tensor,
    uint8,
    where,
    zeros,
    zeros_like,
)
from gt._progress import progress  # noqa: E402
from gt._session import Session, current_session  # noqa: E402
from gt._status import Status, status  # noqa: E402
from gt.autograd import enable_grad, is_grad_enabled, no_grad, set_grad_enabled  # noqa: E402
from gt.config import (  # noqa: E402
    ShardConfig,
    SignalConfig,
    get_config,
    get_signal_config,
    load_config,
    register_config,
)
from gt.functional import *  # noqa: E402, F403
from gt.functional import __all__ as _functional_names  # noqa: E402

float = float32
double = float64
half = float16
long = int64
int = int32

__all__ = [
    "ShardConfig",
    "Session",
    "SignalConfig",
    "Status",
    "Tensor",
    "WorkerError",
    "__version__",
    "arange",
    "autograd",
    "bfloat16",
    "bool",
    "cat",
    "connect",
    "current_session",
    "debug",
    "disconnect",
    "double",
    "dtype",
    "enable_grad",
    "eye",
    "float",
    "float16",
    "float32",
    "float64",
    "from_numpy",
    "full",
    "full_like",
    "get_config",
    "get_signal_config",
    "gpu_workers",
    "half",
    "int",
    "int16",
    "int32",
    "int64",
    "int8",
    "is_grad_enabled",
    "linspace",
    "load_config",
    "long",
    "manual_seed",
    "nn",
    "no_grad",
    "ones",
    "ones_like",
    "optim",
    "progress",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "register_config",
    "set_grad_enabled",
    "signal",
    "stack",
    "status",
    "synchronize",
    "tensor",
    "uint8",
    "where",
    "as_tensor",
    "empty",
    "empty_like",
    "zeros",
    "zeros_like",
    *_functional_names,
]


def __dir__():
    return sorted(__all__)


def _load_environment() -> None:
    """Read what the environment asks for at import."""
    path = _os.environ.get("GT_CONFIG")
    if path:
        load_config(path)


_load_environment()

# Before a fork these two take locks, and handlers run in the opposite order of their registration:
# GT's comes last here, so that it waits for calls in progress, which may need the locks, first.
import atexit as _atexit  # noqa: E402
import concurrent.futures.thread as _pools  # noqa: E402, F401
import logging as _logging  # noqa: E402, F401

_atexit.register(_gt.end_process)
_os.register_at_fork(
    before=_gt.before_fork,
    after_in_parent=_gt.after_fork_in_parent,
    after_in_child=_gt.after_fork_in_child,
)
