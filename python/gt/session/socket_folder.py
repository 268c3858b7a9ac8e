"""Private folders for the sockets of tunnels."""

from __future__ import annotations

import tempfile
from pathlib import Path

#: The longest path of such a folder: a socket's has about a hundred bytes, and ssh adds to it while
#: it makes its own.
_LONGEST = 80


def make_socket_folder(prefix: str) -> Path:
    """Return a new folder that only this user may enter, whose path is short."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    if len(str(folder)) > _LONGEST:
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp"))
    return folder
