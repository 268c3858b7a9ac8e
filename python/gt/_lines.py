"""Lines of the user's source, for messages: their files, their texts, the names they assign."""

from __future__ import annotations

import itertools
import linecache
import os
import re
import stat
import sys
import warnings
from collections.abc import Iterator
from types import FrameType

# `x = `, `self.weight: gt.Tensor = `, `x, y = `, `x += `, `for x in `
_ASSIGNS = re.compile(
    r"\s*(?P<target>[A-Za-z_][\w.\[\]'\", ]*?)\s*(?::[^=]+)?(?:[-+*/@%&|^]|//|\*\*|<<|>>)?=(?!=)"
)
_LOOPS = re.compile(r"\s*for\s+(?P<target>[\w, ]+?)\s+in\b")

#: Numbers of the statements typed at Python's prompt.
_numbers = itertools.count(1)


def variable(line: str) -> str | None:
    """Return the name that a source line, passed as `file:line`, assigns to, or None.

    >>> variable("no such file:1") is None
    True
    """
    code = text(line) or ""
    found = _ASSIGNS.match(code) or _LOOPS.match(code)
    return found["target"] if found else None


def text(line: str) -> str | None:
    """Return the text of a source line, passed as `file:line`, without indentation, or None.

    >>> text("no such file:1") is None
    True
    """
    file, _, number = line.rpartition(":")
    return linecache.getline(file, int(number)).strip() or None if number.isdigit() else None


def is_own(module: str | None) -> bool:
    """Return whether a module is GT's, by its name."""
    return (module or "").partition(".")[0] == "gt"


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the user's line, which called GT's code."""
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and is_own(frame.f_globals.get("__name__")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def shown_file(file: str, code: str) -> str:
    """Return the name under which users know code that is in no file.

    A cell of a notebook is "Cell In[40]", as in IPython's tracebacks. A statement typed at Python's
    prompt is "<stdin>" with a number, and a program that is its standard input "<stdin>". Their
    texts are kept under these names.

    Args:
        file: the code object's file.
        code: its name.
    """
    if file == "<stdin>":
        return _typed(code)
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    cell = shell.compile.format_code_name(file) if shell is not None else None
    if cell is None:
        return file
    shown = " ".join(cell)
    _keep(shown, linecache.getlines(file))
    return shown


def _typed(code: str) -> str:
    """Return the name of a statement typed at the prompt, whose text is kept under it."""
    if not hasattr(sys, "ps1"):
        _keep("<stdin>", _piped())
        return "<stdin>"
    # The last statement runs now, or it calls what an earlier one defines.
    defines = None if code == "<module>" else re.compile(rf"(def|class)\s+{re.escape(code)}\b")
    for lines in _statements():
        if defines is None or any(map(defines.search, lines)):
            shown = f"<stdin {next(_numbers)}>"
            _keep(shown, [f"{line}\n" for line in lines])
            return shown
    return "<stdin>"


def _piped() -> list[str]:
    """Return the lines of a program that Python reads from a file as its standard input.

    A pipe is read only once, by Python.
    """
    try:
        status = os.fstat(0)
        if not stat.S_ISREG(status.st_mode):
            return []
        return os.pread(0, status.st_size, 0).decode().splitlines(keepends=True)
    except (OSError, UnicodeDecodeError):
        return []


def _statements() -> Iterator[list[str]]:
    """Yield the lines of each statement typed at the prompt, the last one first."""
    readline = sys.modules.get("readline")
    if readline is None:
        return
    lines: list[str] = []
    for place in range(readline.get_current_history_length(), 0, -1):
        lines.insert(0, readline.get_history_item(place) or "")
        # The lines of a block are indented, and its first line is not.
        if lines[0][:1] not in ("", " ", "\t"):
            yield lines
            lines = []


def _keep(name: str, lines: list[str]) -> None:
    """Let `linecache` know lines that are in no file."""
    if lines:
        # Without a time of change the entry is never dropped.
        linecache.cache[name] = (sum(map(len, lines)), None, lines, name)
