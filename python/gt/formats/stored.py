"""Files in the safetensors format, whose values are read by those that may."""

from __future__ import annotations

import math
import os
import stat

import gt
from gt import _gt
from gt._gt import Tensor
from gt.formats.roots import workers_read


def check_plain_file(path: str) -> None:
    """Refuse a pipe, a device or a socket, which would wait for ever or never end.

    Raises:
        OSError: there is something else than a file at the path.
    """
    if not os.path.exists(path) or os.path.isfile(path):
        return
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path}: a folder, expected a file")
    what = "pipe" if stat.S_ISFIFO(os.stat(path).st_mode) else "device or socket"
    raise OSError(f"{path}: a {what}, expected a plain file\n  hint: copy its bytes into a file")


class StoredFile:
    """A file whose values are read by workers where these may, else by this process."""

    def __init__(self, path: str):
        check_plain_file(path)
        self._path = os.path.abspath(path)
        self._file = _gt.SafetensorsFile(self._path)
        self._is_read_by_workers = workers_read(self._path)
        self.entries = {name: (dtype, shape) for name, dtype, shape in self._file.entries()}
        self.metadata = self._file.metadata

    def tensor(self, name: str) -> Tensor:
        """Give a tensor."""
        dtype, shape = self.entries.get(name, ("", ()))
        if self._is_read_by_workers and hasattr(gt, dtype or "no dtype"):
            return self._stored(name, dtype, shape, 0)
        return self._file.tensor(name)

    def rows(self, name: str, start: int, end: int) -> Tensor:
        """Give some rows of a tensor."""
        dtype, shape = self.entries[name]
        if not self._is_read_by_workers or end > shape[0]:
            return self._file.rows(name, start, end)
        return self._stored(name, dtype, (end - start, *shape[1:]), start * math.prod(shape[1:]))

    def _stored(self, name: str, dtype: str, shape: tuple[int, ...], skipped: int) -> Tensor:
        begin = self._file.begin_of(name) + skipped * getattr(_gt, dtype).itemsize
        return _gt.load_values(dtype, shape, [(self._path, begin, [0] * len(shape), shape)])
