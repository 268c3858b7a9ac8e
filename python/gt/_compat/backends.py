"""Settings of libraries that PyTorch programs change, such as `gt.backends.cudnn.benchmark = True`.

Workers choose their kernels themselves, compute the same numbers each time, and do not round
float32 to fewer digits: these settings are stored and have no effect. Each library is a module of
its own, as in `import gt.backends.cudnn as cudnn`.
"""

import contextlib
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

from gt._lines import warn
from gt._public import show_callers_of_methods


class _Settings:
    """An object whose attributes are settings. It takes new ones, as in PyTorch."""

    __name__: str

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__ and not name.startswith("_"):
            import difflib  # slow to import

            near = difflib.get_close_matches(name, self.__dict__, n=1, cutoff=0.8)
            if near:
                warn(f"{self.__name__} has no setting '{name}'\n  hint: {near[0]}")
        super().__setattr__(name, value)


class _Library(_Settings, ModuleType):
    """The module of a library, whose attributes are its settings."""

    def __init__(self, name: str, **settings: Any):
        super().__init__(f"{__name__}.{name}", f"Settings of {name}, which have no effect.")
        self.__dict__.update(settings)
        sys.modules[self.__name__] = self

    def __getattr__(self, name: str) -> Any:
        known = sorted(each for each in self.__dict__ if not each.startswith("_"))
        raise AttributeError(
            f"{self.__name__} has no setting '{name}', expected one of {', '.join(known)}"
        )

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
            known = sorted(name for name in before if not name.startswith("_"))
            raise TypeError(f"flags: {sorted(unknown)} are unknown, expected some of {known}")
        self.__dict__.update(settings)
        try:
            yield
        finally:
            self.__dict__.update(before)

    def is_available(self) -> bool:
        """Return False: programs cannot choose the library that computes."""
        return False


class _Precision(_Settings, SimpleNamespace):
    """Settings of the precision of some operations, which is always the operands'."""

    def __init__(self, name: str, **settings: Any):
        super().__init__(__name__=f"{__name__}.{name}", fp32_precision="ieee", **settings)


cudnn = _Library(
    "cudnn",
    enabled=True,
    benchmark=False,
    deterministic=True,
    allow_tf32=False,
    benchmark_limit=10,
    fp32_precision="ieee",
    conv=_Precision("cudnn.conv"),
    rnn=_Precision("cudnn.rnn"),
)


class _Kernels(_Library):
    """Settings of PyTorch's kernels for GPUs, and which of them compute attention."""

    def __init__(self, name: str, **settings: Any):
        super().__init__(name, **settings)
        for kernel in ("flash", "mem_efficient", "math", "cudnn"):
            self._declare(kernel)

    def _declare(self, name: str) -> None:
        chosen = SimpleNamespace(enabled=True)

        def enable(enabled: bool) -> None:
            chosen.enabled = bool(enabled)

        self.__dict__[f"enable_{name}_sdp"] = enable
        self.__dict__[f"{name}_sdp_enabled"] = lambda: chosen.enabled

    @contextlib.contextmanager
    def sdp_kernel(
        self,
        enable_flash: bool = True,
        enable_math: bool = True,
        enable_mem_efficient: bool = True,
        enable_cudnn: bool = True,
    ) -> Iterator[None]:
        """Set which kernels may compute attention in a `with` block, without effect."""
        wanted = {
            "flash": enable_flash,
            "math": enable_math,
            "mem_efficient": enable_mem_efficient,
            "cudnn": enable_cudnn,
        }
        before = {name: self.__dict__[f"{name}_sdp_enabled"]() for name in wanted}
        try:
            for name, enabled in wanted.items():
                self.__dict__[f"enable_{name}_sdp"](enabled)
            yield
        finally:
            for name, enabled in before.items():
                self.__dict__[f"enable_{name}_sdp"](enabled)


cuda = _Kernels(
    "cuda",
    matmul=_Precision(
        "cuda.matmul",
        allow_tf32=False,
        allow_fp16_reduced_precision_reduction=False,
        allow_bf16_reduced_precision_reduction=False,
        allow_fp16_accumulation=False,
    ),
)
mps = _Library("mps")
mha = _Library("mha", get_fastpath_enabled=lambda: False, set_fastpath_enabled=lambda value: None)
mkl = _Library("mkl")
mkldnn = _Library("mkldnn", enabled=True, deterministic=True, allow_tf32=False)
openmp = _Library("openmp")
opt_einsum = _Library("opt_einsum", enabled=False, strategy=None)
xnnpack = _Library("xnnpack", enabled=False)

for _kind in (_Kernels, _Precision):
    show_callers_of_methods(_kind)
