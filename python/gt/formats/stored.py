"""Files in the safetensors format, read by the workers or by this process."""

from __future__ import annotations

import math
import os
import stat

import gt
from gt import _gt
from gt._gt import Tensor
from gt.formats.roots import workers_read


def check_plain_file(path: str) -> None:
    """Raise an error for a pipe, device or socket, whose reading could block or never end.

    Raises:
        OSError: the path exists and is not a regular file.
    """
    if not os.path.exists(path) or os.path.isfile(path):
        return
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path}: a folder, expected a file")
    what = "pipe" if stat.S_ISFIFO(os.stat(path).st_mode) else "device or socket"
    raise OSError(f"{path}: a {what}, expected a plain file\n  hint: copy its bytes into a file")


class StoredFile:
    """A file whose values are read by the workers if they may, else by this process."""

    def __init__(self, path: str):
        check_plain_file(path)
        self._path = os.path.abspath(path)
        self._file = _gt.SafetensorsFile(self._path)
        self._is_read_by_workers = workers_read(self._path)
        self.entries = {name: (dtype, shape) for name, dtype, shape in self._file.entries()}
        self.metadata = self._file.metadata

    def tensor(self, name: str) -> Tensor:
        """Return a tensor by name."""
        dtype, shape = self.entries.get(name, ("", ()))
        if self._is_read_by_workers and hasattr(gt, dtype or "no dtype"):
            return self._stored(name, dtype, shape, 0)
        return self._file.tensor(name)

    def rows(self, name: str, start: int, end: int) -> Tensor:
        """Return the rows from `start` to `end` of a tensor."""
        dtype, shape = self.entries[name]
        if not self._is_read_by_workers or end > shape[0]:
            return self._file.rows(name, start, end)
        return self._stored(name, dtype, (end - start, *shape[1:]), start * math.prod(shape[1:]))

    def _stored(self, name: str, dtype: str, shape: tuple[int, ...], skipped: int) -> Tensor:
        begin = self._file.begin_of(name) + skipped * getattr(_gt, dtype).itemsize
        return _gt.load_values(dtype, shape, [(self._path, begin, [0] * len(shape), shape)])
