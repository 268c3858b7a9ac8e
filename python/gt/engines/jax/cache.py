"""JAX's persistent compilation cache."""

import hashlib
import os
import platform
from importlib.util import find_spec
from pathlib import Path

import jax

from gt._lines import warn

#: The maximum size in bytes; least recently used entries are evicted first.
_MOST = 1 << 30


def keep_compiled_code() -> None:
    """Set up JAX's persistent cache in GT_COMPILE_CACHE, or else in the user's cache directory.

    Processes share the cache, which JAX locks with the package `filelock`; without that package
    there is no cache. A cache that the program has already configured is left unchanged.
    """
    named = os.environ.get("GT_COMPILE_CACHE")
    if named == "off" or jax.config.values["jax_compilation_cache_dir"]:
        return
    if find_spec("filelock") is None:
        if named:
            warn(
                "GT_COMPILE_CACHE: JAX needs the package filelock for it: pip install filelock",
            )
        return
    try:
        caches = named or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "gt")
        folder = Path(caches, "jax", _processor())
        # Only the owner may write: the files contain code that this process runs.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: the user has no home directory
        if named:
            warn(f"GT_COMPILE_CACHE: {error}")
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_compilation_cache_max_size", _MOST)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)


def _processor() -> str:
    """Return a hash of the CPU's features: machines that share the directory may differ."""
    able = platform.machine() + platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        able += next((line for line in lines if line.startswith(("flags", "Features"))), "")
    except OSError:
        pass  # not Linux
    return hashlib.sha256(able.encode()).hexdigest()[:12]
