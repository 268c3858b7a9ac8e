"""Mistakes of users: what each error says, and that its traceback ends at the user's line.

The files in `tests/mistakes` have a mistake and below it, indented, what is printed.
`GT_WRITE_MISTAKES=1 pytest tests/test_mistakes_of_users.py` writes them anew.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import traceback
from pathlib import Path

import gt
import numpy as np
import pytest
from gt import nn
from processes import embedded_only, one_engine_only, unsharded_only

pytestmark = [embedded_only, unsharded_only, one_engine_only]

FOLDER = Path(__file__).parent / "mistakes"
FILE = "<mistake>"
#: Begins a line about what is wrong with an error.
WRONG = "WRONG:"


def read(name: str) -> list[tuple[str, str]]:
    """Return the mistakes of a file, and what each prints."""
    found = []
    for entry in (FOLDER / f"{name}.txt").read_text().strip().split("\n\n"):
        code, _, printed = entry.partition("\n")
        found.append((code, re.sub(r"^    ", "", printed, flags=re.M)))
    return found


def write(name: str, entries: list[tuple[str, str]]) -> None:
    """Write a file of mistakes, with what they print now."""
    text = "\n\n".join(f"{code}\n" + re.sub(r"^", "    ", out, flags=re.M) for code, out in entries)
    (FOLDER / f"{name}.txt").write_text(text + "\n")


def printed_by_python(code: str, folder: Path) -> str:
    """Run a line of Python; return the error that it raises, and check where it is raised."""

    def yaml(text: str) -> str:
        (folder / "config.yaml").write_text(text)
        return str(folder / "config.yaml")

    names = {"gt": gt, "nn": nn, "F": nn.functional, "np": np, "yaml": yaml}
    try:
        exec(compile(code, FILE, "exec"), names)
    except Exception as error:
        frames = [of.filename for of in traceback.extract_tb(error.__traceback__)][1:]
        # Without what Python suggests, which differs between its versions.
        kind = type(error)
        module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
        text = f"{module}{kind.__qualname__}: {error}"
        if {*frames} != {FILE}:
            text += f"\n{WRONG} the traceback shows {frames}"
        if error.__cause__ or (error.__context__ and not error.__suppress_context__):
            text += f"\n{WRONG} the traceback of another error is printed first"
        return text.replace(str(folder), "FOLDER")
    return "no error"


def printed_by_command(command: str) -> str:
    """Run a command line; return the end of what it prints to stderr."""
    words = command.removeprefix("$ ")
    bin = str(Path(sys.executable).parent)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GT_")}
    environment["PATH"] = bin + os.pathsep + environment["PATH"]
    done = subprocess.run(
        words, shell=True, capture_output=True, text=True, timeout=60, env=environment
    )
    text = done.stderr.strip()
    if "Traceback" in text:
        files = re.findall(r'^  File "([^"]+)"', text, flags=re.M)
        text = re.sub(r"^Traceback.*\n(  .*\n)*", "", text, flags=re.M)
        text += "" if {*files} == {"<string>"} else f"\n{WRONG} the traceback shows {files}"
    # Without the lines about usage, and the list of commands.
    return re.sub(r"^usage:.*\n( .*\n)*", "", text).partition("\n\n")[0]


PYTHON = [
    pytest.param(name, id=name)
    for name in ("tensors", "gradients", "modules", "training", "sessions")
]
COMMANDS = ["environment", "commands"]


@pytest.mark.parametrize("name", [*PYTHON, *COMMANDS])
def test_each_mistake_is_explained(name, tmp_path):
    entries = read(name)
    if name in COMMANDS:
        now = [(code, printed_by_command(code)) for code, _ in entries]
    else:
        gt.ones(1).item()  # the session has started
        now = [(code, printed_by_python(code, tmp_path)) for code, _ in entries]
    if os.environ.get("GT_WRITE_MISTAKES") == "1":
        write(name, now)
    assert now == read(name)
    assert not [code for code, printed in now if WRONG in printed]
