"""What `gt --version` prints: version, commit, engines, features and processor.

Nothing is imported to find out: neither PyTorch nor JAX nor NumPy.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from gt import _gt
from gt.engines import gpus

#: The folder of the package `gt`.
_PACKAGE = Path(__file__).resolve().parents[1]

#: The time limit of git, in seconds.
_GIT_LIMIT = 2.0

#: The package that each engine needs, by engine.
_PACKAGES = {"numpy": "numpy", "pytorch": "torch", "jax": "jax"}

#: The processor features that kernels use, by their names in /proc/cpuinfo.
_PROCESSOR_FEATURES = (
    *("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl"),
    *("asimd", "asimdhp", "asimddp", "bf16", "sve"),
)


def report() -> str:
    """Return the text of `gt --version`, with everything that a bug report needs."""
    lines = [
        f"gt {_gt.__version__} (commit {commit()})",
        f"engine: {default_engine()}",
        f"engines: {', '.join(['native', *map(engine, _PACKAGES)])}",
        f"features: {', '.join(features())}",
        f"python: {platform.python_implementation()} {platform.python_version()}",
        f"platform: {platform.platform()}",
        f"processor: {processor()}",
    ]
    return "\n".join(lines)


def commit(package: Path = _PACKAGE) -> str:
    """Return the commit that this GT was built from, with its date, or "unknown".

    In a checkout git is asked. A wheel has the file `_commit.txt` with the output of
    `git log -1 --format='%h, %cs'` at build time.
    """
    checkout = package.parents[1]
    if (checkout / "Cargo.toml").exists() and (checkout / ".git").exists():
        return _ask_git(checkout) or "unknown"
    try:
        return _one_line((package / "_commit.txt").read_text(encoding="utf-8")) or "unknown"
    except (OSError, ValueError):
        return "unknown"


def _ask_git(checkout: Path) -> str:
    """Return git's description of the last commit, or "" if git fails or exceeds its limit."""
    command = ["git", "-C", str(checkout), "log", "-1", "--format=%h, %cs"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_GIT_LIMIT, stdin=subprocess.DEVNULL
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
    return _one_line(done.stdout) if done.returncode == 0 else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())


def default_engine() -> str:
    """Return the name of the engine that a worker without further options would use, and why."""
    if named := os.environ.get("GT_BACKEND"):
        return f"{named} (set by GT_BACKEND)"
    if gpus.has_traces() and engine_version("pytorch"):
        return "pytorch if it sees the GPU, else native (default here)"
    return "native (default here)"


def engine(name: str) -> str:
    """Return an engine's name with the version of its package, or with "not found"."""
    version = engine_version(name)
    if not version:
        return f"{name} not found"
    too_old = name == "pytorch" and version != "of unknown version" and gpus.too_old()
    return f"{name} {version}" + (" (too old)" if too_old else "")


def engine_version(name: str) -> str:
    """Return the version of an engine's package, or "" if it is not installed."""
    package = _PACKAGES[name]
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "of unknown version" if find_spec(package) else ""


def features() -> list[str]:
    """Return the features that differ between builds and machines."""
    module = Path(_gt.__file__).name
    found = ["stable ABI (abi3)" if ".abi3." in module else f"module {module}"]
    found.append("encrypted links" if hasattr(_gt, "run_server") else "no network")
    found.append(f"PyTorch extension {'built' if is_extension_built() else 'not built'}")
    return found


def is_extension_built() -> bool:
    """Return whether the C++ part of gt.torch is built for the installed version of PyTorch.

    Its file is named after the version of PyTorch and a hash of PyTorch's paths, which are unknown
    without importing it. So a build for another installation of the same version counts as well.
    """
    version = engine_version("pytorch")
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return bool(version) and any((cache / "gt").glob(f"torch-{version}-*.so"))
    except (OSError, RuntimeError):
        return False  # The home folder is missing or unreadable.


def processor() -> str:
    """Return the architecture, the number of usable cores, and the features kernels can use."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    line = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    known = set(line[1].split()) if line else set()
    names = [name for name in _PROCESSOR_FEATURES if name in known]
    return ", ".join([platform.machine(), f"{count} cores", *names])
