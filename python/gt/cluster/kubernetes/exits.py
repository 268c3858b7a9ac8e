"""What happens to a cluster when its program ends."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gt.cluster.kubernetes.lifecycle import Lifecycle


def ending_with_program(cluster: Lifecycle, *, is_kept: bool) -> Callable[[], None]:
    """Close a cluster when this program ends in good order, or leave it running if it is kept.

    Returns:
        A function after which nothing is done any more.
    """
    owner = os.getpid()

    def end() -> None:
        # A forked child is not the owner.
        if cluster.is_running and os.getpid() == owner:
            if is_kept:
                cluster.detach()
            else:
                cluster.close()

    atexit.register(end)
    return lambda: atexit.unregister(end)
