"""The version of GT, and of the libraries for GPUs that it is built with: none."""

from gt._gt import __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

debug = False
cuda: str | None = None
git_version = "unknown"
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
