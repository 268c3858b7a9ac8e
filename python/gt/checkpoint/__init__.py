"""Checkpoints: the state of a training run, written in the background by the workers.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> model = gt.nn.Linear(2, 1)
    >>> manager = gt.checkpoint.Manager(folder, keep=3, every=10, model=model)
    >>> for step in range(manager.restore_or_initialize(), 30):
    ...     _ = manager.save(step + 1)
    >>> manager.wait()
    >>> manager.steps()
    [10, 20, 30]

A checkpoint is a folder of files with values and a manifest. The manifest is written last, and a
folder without one is not a checkpoint. A checkpoint may be loaded with another number of workers,
another sharding, or another engine.
"""

from gt._public import show_callers
from gt.checkpoint.files import Saving, load, save, verify
from gt.checkpoint.manager import Manager
from gt.checkpoint.manifest import CheckpointError

__all__ = ["CheckpointError", "Manager", "Saving", "load", "save", "verify"]

show_callers(globals())
