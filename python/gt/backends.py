"""What PyTorch's programs set about libraries: `gt.backends.cudnn.benchmark = True` and the like.

Workers choose their kernels themselves, compute the same numbers each time, and do not round
float32 to fewer digits: these settings are kept, and change nothing.
"""

from types import SimpleNamespace


class _Library(SimpleNamespace):
    """Settings of a library."""

    def is_available(self) -> bool:
        """Say that there is none to choose: which library computes is GT's matter."""
        return False


cudnn = _Library(
    enabled=True, benchmark=False, deterministic=True, allow_tf32=False, benchmark_limit=10
)
cuda = _Library(
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
