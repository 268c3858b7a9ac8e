"""Variable names from lines of the user's source, for error messages."""

import linecache
import re

# `x = `, `self.weight: gt.Tensor = `, `x, y = `, `x += `, `for x in `
_ASSIGNS = re.compile(
    r"\s*(?P<target>[A-Za-z_][\w.\[\]'\", ]*?)\s*(?::[^=]+)?(?:[-+*/@%&|^]|//|\*\*|<<|>>)?=(?!=)"
)
_LOOPS = re.compile(r"\s*for\s+(?P<target>[\w, ]+?)\s+in\b")


def variable(line: str) -> str | None:
    """Return the name that a source line, passed as `file:line`, assigns to, or None.

    >>> variable("no such file:1") is None
    True
    """
    file, _, number = line.rpartition(":")
    text = linecache.getline(file, int(number)) if number.isdigit() else ""
    found = _ASSIGNS.match(text) or _LOOPS.match(text)
    return found["target"] if found else None
