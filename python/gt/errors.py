"""GT's own exceptions by name, for `except`; all others are Python's.

    try:
        loss.item()
    except gt.errors.WorkerError as error:
        print(error)

The functions, such as `not_connected_error`, return message texts; early versions had them here.
"""

import gt.nn
import gt.optim  # noqa: F401 - before a module of theirs, as other threads may import them
from gt._gt import OutOfMemoryError, WorkerError, WorkerIndexError
from gt.autograd import GradcheckError
from gt.convert import ConvertError
from gt.engines import StepError
from gt.engines.gpus import DeviceError
from gt.linalg import LinAlgError
from gt.utils.checkpoint import CheckpointError

__all__ = [
    "CheckpointError",
    "ConvertError",
    "DeviceError",
    "GradcheckError",
    "LinAlgError",
    "OutOfMemoryError",
    "StepError",
    "WorkerError",
    "WorkerIndexError",
    "no_workers_error",
    "not_connected_error",
    "operation_failed_error",
]


def not_connected_error() -> str:
    """Return the text for a missing session."""
    return "there is no session\n  hint: gt.connect('host:port'), or gt.gpu_workers(n)"


def no_workers_error(num_workers: int = 0) -> str:
    """Return the text for a server without workers, or with `num_workers`."""
    return (
        f"the server has {num_workers} workers\n  hint: `gt worker --address HOST:PORT` starts one"
    )


def operation_failed_error(op: str, details: str) -> str:
    """Return the text for a failed operation and its reason."""
    return f"{op}: {details}"
