"""The environment variables that GT reads, by which misspelled ones are found."""

from __future__ import annotations

import os

from gt._lines import warn

#: docs/environment.md describes them; a test compares the two.
VARIABLES = (
    "GT_AUTOCAST",
    "GT_AUTO_COMPILE",
    "GT_AUTO_SHARD",
    "GT_BACKEND",
    "GT_CHECK_NAN",
    "GT_CLUSTERS",
    "GT_COLLECTIVES",
    "GT_COLLECTIVES_INTERFACE",
    "GT_COLLECTIVES_TIMEOUT",
    "GT_COMPILE",
    "GT_COMPILE_CACHE",
    "GT_COMPILE_TIMEOUT",
    "GT_CONFIG",
    "GT_DEBUG_CLIENT",
    "GT_DEBUG_COMPILE",
    "GT_DEBUG_DISPATCHER",
    "GT_DEBUG_WORKER",
    "GT_ENGINE_TIMEOUT",
    "GT_FULL_TRACEBACK",
    "GT_HOME",
    "GT_HOTPATH_THRESHOLD",
    "GT_INSTRUCTION_LOG",
    "GT_KERNELS",
    "GT_KEY",
    "GT_MEMORY",
    "GT_MISMATCH_DIR",
    "GT_RACK",
    "GT_RECORD",
    "GT_RECORD_ANONYMOUS",
    "GT_RUN_AHEAD",
    "GT_SAVE_COMPILED_CODE",
    "GT_SPILL_DIR",
    "GT_SPILL_LIMIT",
    "GT_SSH",
    "GT_STRICT",
    "GT_TF32",
    "GT_TORCH_EXTENSION",
    "GT_TORCH_FALLBACK",
    "GT_UNPACK_LIMIT",
    "GT_VERBOSE",
    "GT_WORKER_BATCH_SIZE",
)


def warn_of_unknown_variables() -> None:
    """Warn of each variable that is set, begins with `GT_` and is nearly one that GT reads."""
    unknown = [name for name in os.environ if name.startswith("GT_") and name not in VARIABLES]
    if not unknown:
        return
    import difflib  # slow to import

    for name in sorted(unknown):
        near = difflib.get_close_matches(name, VARIABLES, n=1, cutoff=0.8)
        if near:
            warn(f"the environment variable {name} is not one of GT's\n  hint: {near[0]}")
