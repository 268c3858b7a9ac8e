"""Which files the workers of a session read and write themselves."""

import os

from gt import _gt


def workers_may_use(path: str) -> bool:
    """Say whether the workers of this thread's session may use an absolute path.

    Workers in this process may use what it may; others what is below a `--data-root`.
    """
    roots = _gt.data_roots()
    if roots is None:
        return True
    return any(os.path.commonpath([root, path]) == root for root in roots)


def workers_read(path: str) -> bool:
    """Say whether workers read a file rather than this process.

    Workers of this process would read what it can map into memory as well.
    """
    return _gt.data_roots() is not None and workers_may_use(path)
