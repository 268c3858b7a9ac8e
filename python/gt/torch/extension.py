"""The part of gt.torch in C++, which is optional: with it, operations take about half the time.

`python -m gt.torch.build` builds it for the PyTorch that is installed, and from then on
`import gt.torch` uses it, unless `GT_TORCH_EXTENSION=0`.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings

import torch

from gt._gt import torch_device

_SOURCE = pathlib.Path(__file__).parent / "extension.cpp"
_connected = False


def path() -> pathlib.Path:
    """Give the file of the extension for this PyTorch and this GT."""
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    made_of = hashlib.sha256(_SOURCE.read_bytes() + repr(_options()).encode()).hexdigest()[:12]
    return pathlib.Path(cache) / "gt" / f"torch-{torch.__version__}-{made_of}.so"


def connect() -> bool:
    """Load the extension if it is built and wanted; whether it is there."""
    if os.environ.get("GT_TORCH_EXTENSION") == "0":
        return False
    try:
        made = path()
        if not made.exists():
            return False
    except (OSError, RuntimeError):
        # There is no home, or it cannot be read.
        return False
    try:
        torch_device.connect_extension(str(made))
    except RuntimeError as error:
        warnings.warn(f"gt.torch goes without its extension: {error}", stacklevel=2)
        return False
    global _connected
    _connected = True
    return True


def is_connected() -> bool:
    """Whether this process uses the extension."""
    return _connected


def build() -> pathlib.Path:
    """Build the extension.

    Raises:
        RuntimeError: there is no C++ compiler, or it fails.
    """
    compiler = shutil.which(os.environ.get("CXX") or "c++")
    if compiler is None:
        raise RuntimeError(
            "a C++ compiler is needed, and there is neither c++ nor $CXX\n"
            "  hint: apt install g++; without it, gt.torch works as well, but slower"
        )
    made = path()
    made.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=made.parent) as folder:
        # Other processes see the whole file or none.
        new = pathlib.Path(folder) / made.name
        _run([compiler, *_options(), "-o", str(new)])
        new.replace(made)
    return made


def _options() -> list[str]:
    root = pathlib.Path(torch.__file__).parent
    include = root / "include"
    return [
        *("-std=c++20", "-O2", "-fPIC", "-shared", "-w"),
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        *(f"-I{folder}" for folder in (include, include / "torch" / "csrc" / "api" / "include")),
        str(_SOURCE),
        *(f"-L{root / 'lib'}", "-ltorch_cpu", "-lc10"),
        *(["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []),
    ]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} has failed:\n{done.stderr[-4000:]}")
