"""`torch.cluster.graphs`: GT records repeated steps itself, so that there is nothing to capture."""

from __future__ import annotations

from typing import Any

from gt.torch.cluster import refused

__all__ = ["is_current_stream_capturing", "make_graphed_callables"]

__getattr__ = refused.of("torch.cluster.graphs")


def is_current_stream_capturing() -> bool:
    """Return False: no graph is ever captured."""
    return False


def make_graphed_callables(callables: Any, sample_args: Any, *options: Any, **named: Any) -> Any:
    """Return the functions or modules as they are: GT records what they repeat.

    Args:
        callables: A function or module, or a tuple of them.
        sample_args: Arguments of the function, or a tuple of such arguments; not used.
        *options: Further options of PyTorch's, which concern its recording; not used.
        **named: The same, by keyword.
    """
    return callables
