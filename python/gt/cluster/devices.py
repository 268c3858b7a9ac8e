"""The devices of this machine, one for each worker."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from gt.engines.gpus import has_traces


@cache
def gpus() -> tuple[str, ...]:
    """Return the GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them.

    CUDA is not initialized, and PyTorch not imported: workers do that.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return tuple(of.strip() for of in visible.split(",") if of.strip() not in ("", "-1"))
    tool = shutil.which("nvidia-smi")
    if not has_traces() or tool is None:
        return ()
    try:
        found = subprocess.run([tool, "-L"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(str(number) for number in range(len(listed(found.stdout))))


def listed(text: str) -> list[str]:
    """Return the lines of GPUs in the output of `nvidia-smi -L`, without those of MIG devices."""
    return [line for line in text.splitlines() if line.startswith("GPU ")]


def memory_part(count: int) -> int:
    """Return the bytes for the tensors of one of several workers on a machine without GPUs."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        machine = min(machine, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (OSError, ValueError):
        pass  # There is no limit.
    return machine * 9 // 10 // count


def device_environment(number: int) -> dict[str, str]:
    """Return the environment that gives a worker the GPU of its number, if there is one."""
    found = gpus()
    if not found:
        return {}
    return {"CUDA_VISIBLE_DEVICES": found[number] if number < len(found) else ""}
