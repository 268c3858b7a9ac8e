"""The optional C++ extension of gt.torch, which halves the time per operation.

`python -m gt.torch.build` builds it for the installed PyTorch; from then on `import gt.torch` uses
it, unless `GT_TORCH_EXTENSION=0`.
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
    """Return the path of the extension for this version of PyTorch and GT."""
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    made_of = hashlib.sha256(_SOURCE.read_bytes() + repr(_options()).encode()).hexdigest()[:12]
    return pathlib.Path(cache) / "gt" / f"torch-{torch.__version__}-{made_of}.so"


def connect() -> bool:
    """Load the extension if it is built and not disabled; return whether it is loaded."""
    if os.environ.get("GT_TORCH_EXTENSION") == "0":
        return False
    try:
        made = path()
        if not made.exists():
            return False
    except (OSError, RuntimeError):
        # There is no home directory, or it is not readable.
        return False
    try:
        torch_device.connect_extension(str(made))
    except RuntimeError as error:
        warnings.warn(f"gt.torch runs without its extension: {error}", stacklevel=2)
        return False
    global _connected
    _connected = True
    return True


def is_connected() -> bool:
    """Return whether this process uses the extension."""
    return _connected


def build() -> pathlib.Path:
    """Build the extension.

    Raises:
        RuntimeError: There is no C++ compiler, or compilation fails.
    """
    compiler = shutil.which(os.environ.get("CXX") or "c++")
    if compiler is None:
        raise RuntimeError(
            "no C++ compiler was found: neither c++ nor $CXX\n"
            "  hint: apt install g++; without the extension gt.torch works, but is slower"
        )
    made = path()
    made.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=made.parent) as folder:
        # The rename is atomic: other processes never see a partial file.
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
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-4000:]}")
