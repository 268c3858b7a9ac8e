"""How the child of an actor is run: it dies with the actor, and has the GPUs that Ray gave it."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import gt

#: Asks the kernel to kill this process with its parent, then becomes the program: also a program
#: that does not read its standard input any more ends with the actor.
_ENDS_WITH_PARENT = """\
import os, sys
try:
    import ctypes
    ctypes.CDLL(None).prctl(1, 9)
except (ImportError, OSError, AttributeError):
    pass
if os.getppid() != int(sys.argv[1]):
    os._exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


def ending_with_parent(command: Sequence[str]) -> list[str]:
    """Return a command that runs another one, which is killed when the caller's thread ends."""
    return [sys.executable, "-I", "-S", "-c", _ENDS_WITH_PARENT, str(os.getpid()), *command]


def environment(gpus: Sequence[str]) -> dict[str, str]:
    """Return what the environment of a child has besides that of the actor.

    Args:
        gpus: the GPUs that Ray has given to the actor.
    """
    here = str(Path(gt.__file__).resolve().parent.parent)
    variables = {"CUDA_VISIBLE_DEVICES": ",".join(gpus)}
    installed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    if here not in {str(Path(path).resolve()) for path in installed}:
        # The child imports the same package, wherever Ray has it.
        given = os.environ.get("PYTHONPATH")
        variables["PYTHONPATH"] = f"{given}{os.pathsep}{here}" if given else here
    return variables
