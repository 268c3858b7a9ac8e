"""The errors of GT's own by name, for `except`; all others are Python's.

    try:
        loss.item()
    except gt.errors.WorkerError as error:
        print(error)

`not_connected_error` and its like are texts, which early versions had here.
"""

from gt._gt import WorkerError
from gt.autograd import GradcheckError
from gt.engines.gpus import DeviceError
from gt.utils.checkpoint import CheckpointError

__all__ = [
    "CheckpointError",
    "DeviceError",
    "GradcheckError",
    "WorkerError",
    "no_workers_error",
    "not_connected_error",
    "operation_failed_error",
]


def not_connected_error() -> str:
    """Say that there is no session."""
    return "there is no session\n  hint: gt.connect('host:port'), or gt.gpu_workers(n)"


def no_workers_error(num_workers: int = 0) -> str:
    """Say that a server has no workers, or how many it has."""
    return f"the server has {num_workers} workers\n  hint: python -m gt.worker --host HOST -p PORT"


def operation_failed_error(op: str, details: str) -> str:
    """Return which operation has failed, and why."""
    return f"{op}: {details}"
