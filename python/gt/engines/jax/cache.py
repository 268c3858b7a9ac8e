"""Where code that XLA has compiled is kept from one run to the next."""

import hashlib
import os
import platform
import warnings
from importlib.util import find_spec
from pathlib import Path

import jax

#: The most bytes that are kept; what was used least recently goes first.
_MOST = 1 << 30


def keep_compiled_code() -> None:
    """Set up JAX's persistent cache where GT_COMPILE_CACHE says, or in the user's cache folder.

    Several processes share it: JAX locks it by the package `filelock`, without which nothing is
    kept. A cache that the program has set up by itself stays as it is.
    """
    named = os.environ.get("GT_COMPILE_CACHE")
    if named == "off" or jax.config.values["jax_compilation_cache_dir"]:
        return
    if find_spec("filelock") is None:
        if named:
            warnings.warn(
                "GT_COMPILE_CACHE: JAX needs the package filelock for it: pip install filelock",
                stacklevel=2,
            )
        return
    try:
        caches = named or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "gt")
        folder = Path(caches, "jax", _processor())
        # Who writes there decides what runs here.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:  # the latter if the user has no home
        if named:
            warnings.warn(f"GT_COMPILE_CACHE: {error}", stacklevel=2)
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_compilation_cache_max_size", _MOST)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)


def _processor() -> str:
    """Name the processor by what it can do: machines that share a folder may differ in that."""
    able = platform.machine() + platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        able += next((line for line in lines if line.startswith(("flags", "Features"))), "")
    except OSError:
        pass  # not Linux
    return hashlib.sha256(able.encode()).hexdigest()[:12]
