"""Rules for which files the workers of a session read and write themselves."""

import os

from gt import _gt


def workers_may_use(path: str) -> bool:
    """Return whether the workers of this thread's session may use an absolute path.

    Workers in this process may use any path; other workers only paths below a `--data-root`.
    """
    roots = _gt.data_roots()
    if roots is None:
        return True
    return any(os.path.commonpath([root, path]) == root for root in roots)


def workers_read(path: str) -> bool:
    """Return whether workers read a file instead of this process.

    Workers in this process do not, because the process can map the file into memory itself.
    """
    return _gt.data_roots() is not None and workers_may_use(path)
