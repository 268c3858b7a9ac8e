"""A stand-in for NVIDIA's management library, which workers load instead of it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("nvml.c")

#: The GPU that it knows, if a test does not change it.
GPU = {
    "uuid": "GPU-ffc79498-8ff3-c2dc-3b0d-fafd804516ae",
    "name": "NVIDIA H200",
    "index": 3,
    "percent": 87,
    "used": 12_000_000_000,
    "total": 150_000_000_000,
}


class StandInLibrary:
    """The library, compiled into a folder, and its answers."""

    def __init__(self, folder: Path, *flags: str):
        """Compile it, with these flags of the compiler."""
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("NOT TESTED: there is no C compiler for the stand-in of NVML")
        self._folder, self._answers = folder, folder / "nvml"
        library = str(folder / "libnvidia-ml.so.1")
        command = [compiler, "-Wall", "-Werror", "-shared", "-fPIC", *flags]
        subprocess.run([*command, "-o", library, str(SOURCE)], check=True, timeout=60)
        self.set()

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a process that finds it."""
        found = [str(self._folder), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        return {"LD_LIBRARY_PATH": os.pathsep.join(found), "GT_TEST_NVML": str(self._answers)}

    def set(self, **changed: str | int) -> None:
        """Set its answers: those that are not given are as in `GPU`."""
        new = self._answers.with_name("nvml.new")
        new.write_text("".join(f"{name} {value}\n" for name, value in {**GPU, **changed}.items()))
        new.replace(self._answers)

    def calls(self, name: str) -> int:
        """Return how often a function was called: init, read or shutdown."""
        try:
            return self._answers.with_name("nvml.calls").read_text().split().count(name)
        except FileNotFoundError:
            return 0
