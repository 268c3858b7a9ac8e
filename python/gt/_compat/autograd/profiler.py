"""`gt.profiler` under the name that programs use with gradients."""

from __future__ import annotations

from typing import Any

from gt import profiler
from gt._absent import absent_names
from gt.profiler import record_function

__all__ = ["profile", "record_function"]


class profile(profiler.profile):
    """A `with` block in which the times of named parts are recorded, as `gt.profiler.profile`.

    Args:
        enabled: whether to record.
        **options: PyTorch's further options, such as `use_cuda`; GT records the same with any.
    """

    def __init__(self, enabled: bool = True, **options: Any):
        off = None if enabled else lambda step: profiler.ProfilerAction.NONE
        super().__init__(schedule=off)

    def table(self, *args: Any, **kwargs: Any) -> str:
        """Return the runs of named parts as a table."""
        return self._events.table(*args, **kwargs)

    def total_average(self) -> profiler.FunctionEvent:
        """Return the sum of all runs."""
        return self._events.total_average()


globals().update(
    absent_names(
        __name__, "emit_itt emit_nvtx load_nvprof", "gt.profiler.profile records named parts"
    )
)
