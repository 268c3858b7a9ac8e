"""What PyTorch's programs set about libraries: `gt.backends.cudnn.benchmark = True` and the like.

Workers choose their kernels themselves, compute the same numbers each time, and do not round
float32 to fewer digits: these settings are kept, and change nothing.
"""

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any


class _Library(SimpleNamespace):
    """Settings of a library."""

    def is_built(self) -> bool:
        """Say that GT was not built with it."""
        return False

    def version(self) -> None:
        """Return None, as where there is no such library."""

    @contextlib.contextmanager
    def flags(self, **settings: Any) -> Iterator[None]:
        """Keep other settings for a `with` block.

        >>> with gt.backends.cudnn.flags(benchmark=True):
        ...     print(gt.backends.cudnn.benchmark)
        True
        """
        before = dict(self.__dict__)
        unknown = settings.keys() - before.keys()
        if unknown:
            raise TypeError(
                f"flags: {sorted(unknown)} are unknown, expected some of {sorted(before)}"
            )
        self.__dict__.update(settings)
        try:
            yield
        finally:
            self.__dict__.update(before)

    def is_available(self) -> bool:
        """Say that there is none to choose: which library computes is GT's matter."""
        return False


cudnn = _Library(
    enabled=True, benchmark=False, deterministic=True, allow_tf32=False, benchmark_limit=10
)


class _Kernels(_Library):
    """Settings of PyTorch's kernels for GPUs, and which of them compute attention."""

    def __init__(self, **settings: Any):
        super().__init__(**settings)
        for name in ("flash", "mem_efficient", "math", "cudnn"):
            self._declare(name)

    def _declare(self, name: str) -> None:
        chosen = SimpleNamespace(enabled=True)

        def enable(enabled: bool) -> None:
            chosen.enabled = bool(enabled)

        self.__dict__[f"enable_{name}_sdp"] = enable
        self.__dict__[f"{name}_sdp_enabled"] = lambda: chosen.enabled


cuda = _Kernels(
    matmul=SimpleNamespace(
        allow_tf32=False,
        allow_fp16_reduced_precision_reduction=False,
        allow_bf16_reduced_precision_reduction=False,
    )
)
mps = _Library()
mkl = _Library()
mkldnn = _Library(enabled=True)
openmp = _Library()
