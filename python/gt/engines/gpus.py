"""Detection of GPUs, and of the reason why an existing GPU cannot be used."""

import os
import re
import sys
import warnings
from importlib import import_module
from importlib.util import find_spec

#: The oldest supported version of PyTorch.
OLDEST_PYTORCH = (2, 6)

#: Paths that indicate a GPU other than /dev/nvidia*: in containers, in WSL, and for AMD.
_DRIVERS = ("/proc/driver/nvidia", "/dev/dxg", "/dev/kfd")
_HINT = "computing on the CPU; hint: set GT_BACKEND=native to hide this message"

_told: set[str] = set()


class DeviceError(RuntimeError):
    """A GPU exists but cannot be used; the text is the reason, in one line."""

    __module__ = "gt.errors"


def look() -> tuple[int, str]:
    """Return the number of GPUs that PyTorch sees, and why it sees none of existing ones.

    PyTorch is not imported on machines that have no trace of a GPU.
    """
    if not has_traces():
        return 0, ""
    count, why = _count()
    # Only device files prove that there is a GPU: containers without one may have the other
    # traces.
    named = [name for name in _devices() if re.fullmatch(r"nvidia\d+", name)]
    if count or not named:
        return count, ""
    return 0, f"there is a GPU (/dev/{named[0]}), but {why}"


def has_traces() -> bool:
    """Return whether there may be a GPU, without importing PyTorch.

    That is so if traces of a driver exist and CUDA_VISIBLE_DEVICES does not hide all GPUs.
    """
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return False
    return bool(_devices()) or any(map(os.path.exists, _DRIVERS))


def _devices() -> list[str]:
    return sorted(name for name in os.listdir("/dev") if name.startswith("nvidia"))


def _count() -> tuple[int, str]:
    """Return the number of GPUs that PyTorch sees, and if that is 0, why."""
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
        # A library is missing, or the driver failed during the query.
        return 0, f"PyTorch cannot use it: {first_line(error)}"
    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        return 0, f"PyTorch {torch.__version__} was built without CUDA"
    why = f": {first_line(said[0].message)}" if said else ""
    return 0, f"PyTorch sees none{why}; `nvidia-smi` shows whether the driver answers"


def too_old() -> str:
    """Return a message that PyTorch is too old, or "" if it is not."""
    from importlib import metadata  # importing it takes a quarter of the time of `import gt`

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
    """Print to stderr why an existing GPU is not used; each reason once per process."""
    if why and why not in _told:
        _told.add(why)
        print(f"gt: {why}; {_HINT}", file=sys.stderr, flush=True)


def first_line(error: object) -> str:
    """Return the first line of an error's message, without a full stop."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
