"""What happens to a cluster when its program ends."""

from __future__ import annotations

import atexit
import os
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gt.cluster.kubernetes.lifecycle import Lifecycle


def ending_with_program(cluster: Lifecycle, *, is_kept: bool) -> None:
    """Close a cluster when this program ends in good order, or leave it running."""
    found, owner = weakref.ref(cluster), os.getpid()

    def end() -> None:
        of = found()
        # A forked child is not the owner.
        if of is not None and of.is_running and os.getpid() == owner:
            if is_kept:
                of.detach()
            else:
                of.close()

    atexit.register(end)
