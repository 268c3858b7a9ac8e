"""Settings of libraries that PyTorch programs change, such as `gt.backends.cudnn.benchmark = True`.

Workers choose their kernels themselves, compute the same numbers each time, and do not round
float32 to fewer digits: these settings are stored and have no effect.
"""

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any


class _Library(SimpleNamespace):
    """Settings of a library."""

    def is_built(self) -> bool:
        """Return False: GT does not use the library."""
        return False

    def version(self) -> None:
        """Return None: GT does not use the library."""

    @contextlib.contextmanager
    def flags(self, **settings: Any) -> Iterator[None]:
        """Change settings for a `with` block.

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
        """Return False: programs cannot choose the library that computes."""
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
