"""Whether there are GPUs to compute on, and if one is there that cannot be used: why."""

import os
import re
import sys
import warnings
from importlib import import_module
from importlib.util import find_spec

#: The oldest PyTorch that has all that the engine asks of it.
OLDEST_PYTORCH = (2, 6)

#: Where other GPUs than those at /dev/nvidia* leave their traces: in containers, WSL, and AMD's.
_DRIVERS = ("/proc/driver/nvidia", "/dev/dxg", "/dev/kfd")
_HINT = "computing on the processor; hint: GT_BACKEND=native says so without this line"

_told: set[str] = set()


class DeviceError(RuntimeError):
    """A GPU is there but cannot be used; the text says why, in one line."""


def look() -> tuple[int, str]:
    """Count the GPUs that PyTorch sees; if there are others, say in one line why it sees none.

    Where there plainly is no GPU, PyTorch is not imported to find out.
    """
    if not has_traces():
        return 0, ""
    count, why = _count()
    # What a driver leaves besides devices is also where a container has none of its host's GPUs.
    named = [name for name in _devices() if re.fullmatch(r"nvidia\d+", name)]
    if count or not named:
        return count, ""
    return 0, f"there is a GPU (/dev/{named[0]}), but {why}"


def has_traces() -> bool:
    """Return whether there may be a GPU, without importing PyTorch.

    That is so where a driver has left its traces and CUDA_VISIBLE_DEVICES does not hide all GPUs.
    """
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return False
    return bool(_devices()) or any(map(os.path.exists, _DRIVERS))


def _devices() -> list[str]:
    return sorted(name for name in os.listdir("/dev") if name.startswith("nvidia"))


def _count() -> tuple[int, str]:
    """Count the GPUs that PyTorch sees, or say why it sees none."""
    if find_spec("torch") is None:
        return 0, "PyTorch is not installed (pip install torch)"
    if old := too_old():
        return 0, old
    try:
        torch = import_module("torch")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            if torch.cuda.is_available():
                return torch.cuda.device_count(), ""
    except Exception as error:
        # A library that is missing, or a driver that has gone while it was asked.
        return 0, f"PyTorch cannot use it: {first_line(error)}"
    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        return 0, f"PyTorch {torch.__version__} was built without CUDA"
    why = f": {first_line(said[0].message)}" if said else ""
    return 0, f"PyTorch sees none{why}; `nvidia-smi` shows whether the driver answers"


def too_old() -> str:
    """Say that PyTorch is too old, if it is."""
    from importlib import metadata  # a quarter of what `import gt` would cost

    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        version = import_module("torch").__version__  # built from its source
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is None or tuple(map(int, numbers.groups())) >= OLDEST_PYTORCH:
        return ""
    wanted = ".".join(map(str, OLDEST_PYTORCH))
    return f"PyTorch is {version}, expected {wanted} or newer (pip install --upgrade torch)"


def tell(why: str) -> None:
    """Say on stderr, once in a process, why a GPU that is there is not used."""
    if why and why not in _told:
        _told.add(why)
        print(f"gt: {why}; {_HINT}", file=sys.stderr, flush=True)


def first_line(error: object) -> str:
    """Give the first line of what an error says, without a full stop."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
