"""The checkpoints of a training run."""

from __future__ import annotations

import os
import re
import shutil
import warnings
from collections.abc import Callable
from typing import Any

import gt
from gt.checkpoint.files import Saving, load, save
from gt.checkpoint.manifest import MANIFEST, CheckpointError

_NAME = re.compile(r"step-(\d+)")


class Manager:
    """Writes a checkpoint now and then, keeps the newest, and goes on from the last one.

    Args:
        folder: where the checkpoints are; made if it is missing.
        keep: how many are kept; None for all.
        every: `save(step)` writes at each multiple of this.
        objects: by name, what a checkpoint consists of: whatever has `state_dict` and
            `load_state_dict`, such as models, optimizers, schedulers and data loaders. They may be
            given to `save` and `restore_or_initialize` instead.

    The random numbers of this thread's session are part of every checkpoint.
    """

    def __init__(self, folder: Any, keep: int | None = 3, every: int = 1, **objects: Any):
        if keep is not None and keep < 1:
            raise ValueError(f"Manager: keep is {keep}, expected 1 or more, or None for all")
        if every < 1:
            raise ValueError(f"Manager: every is {every}, expected 1 or more")
        self.folder = os.path.abspath(os.fspath(folder))
        self.keep, self.every, self._objects = keep, every, _checked(objects)
        #: The metadata of the checkpoint that was restored.
        self.metadata: Any = None
        self._saving: Saving | None = None

    def steps(self) -> list[int]:
        """List the steps of the checkpoints that are complete."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        found = (_NAME.fullmatch(name) for name in names)
        steps = [int(match[1]) for match in found if match]
        return sorted(s for s in steps if os.path.exists(os.path.join(self.path(s), MANIFEST)))

    def path(self, step: int) -> str:
        """Give the folder of a step's checkpoint."""
        return os.path.join(self.folder, f"step-{step:09}")

    def latest(self) -> int | None:
        """Give the newest step that there is a checkpoint of."""
        steps = self.steps()
        return steps[-1] if steps else None

    def save(
        self, step: int, *, metadata: Any = None, force: bool = False, **objects: Any
    ) -> Saving | None:
        """Write a checkpoint in the background, if it is time for one.

        If the one before is not on the disk yet, that is waited for. One that could not be written
        is warned about, and training goes on.

        Args:
            step: the number of steps that are done.
            metadata: whatever JSON can hold.
            force: whether it is written although `every` does not ask for it.
            objects: by name, as for the constructor.

        Returns:
            What can be waited for; None if it was not time for one.
        """
        if not force and step % self.every:
            return None
        self._finish(warn=True)
        objects = self._objects | _checked(objects)
        state = {
            "objects": {name: value.state_dict() for name, value in objects.items()},
            "rng": gt.get_rng_state(),
        }
        self._saving = save(self.path(step), state, step=step, metadata=metadata)
        return self._saving

    def wait(self) -> None:
        """Wait until the last checkpoint is on the disk.

        Raises:
            CheckpointError: it could not be written.
        """
        self._finish(warn=False)

    def restore_or_initialize(
        self, initialize: Callable[[], Any] | None = None, **objects: Any
    ) -> int:
        """Go on from the newest checkpoint that is whole; or begin.

        One that is broken is warned about, and the one before it is taken.

        Args:
            initialize: called if there is none.
            objects: by name, as for the constructor; they take their states.

        Returns:
            The number of steps that are done: 0 at the beginning.
        """
        objects = self._objects | _checked(objects)
        self._finish(warn=True)
        for step in reversed(self.steps()):
            try:
                loaded = load(self.path(step))
            except CheckpointError as error:
                warnings.warn(f"{error}\n  hint: the one before is taken", stacklevel=2)
                continue
            self._restore(objects, loaded.state, self.path(step))
            self.metadata = loaded.metadata
            return loaded.step
        if initialize is not None:
            initialize()
        return 0

    def _restore(self, objects: dict[str, Any], state: Any, folder: str) -> None:
        states = state["objects"]
        if missing := sorted(set(objects) - set(states)):
            raise CheckpointError(
                f"checkpoint {folder} has no {', '.join(missing)}; it has {', '.join(states)}"
            )
        for name, value in objects.items():
            value.load_state_dict(states[name])
        gt.set_rng_state(state["rng"])

    def _finish(self, warn: bool) -> None:
        """Wait for the checkpoint that is being written; then remove those that are too old."""
        saving = self._saving
        if saving is None:
            return
        self._saving = None
        try:
            saving.wait()
        except CheckpointError as error:
            if not os.path.exists(os.path.join(saving.folder, MANIFEST)):
                shutil.rmtree(saving.folder, ignore_errors=True)
            if not warn:
                raise
            warnings.warn(str(error), stacklevel=3)
            return
        self._prune()

    def _prune(self) -> None:
        steps = self.steps()
        for step in steps[: -self.keep] if self.keep is not None else []:
            # Without its manifest, what is left of it if this is interrupted does not count.
            os.remove(os.path.join(self.path(step), MANIFEST))
            shutil.rmtree(self.path(step), ignore_errors=True)
        # What an interrupted run has left.
        for name in os.listdir(self.folder):
            match = _NAME.fullmatch(name)
            if match and int(match[1]) not in steps:
                shutil.rmtree(os.path.join(self.folder, name), ignore_errors=True)

    def __enter__(self) -> Manager:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._finish(warn=exception[0] is not None)


def _checked(objects: dict[str, Any]) -> dict[str, Any]:
    for name, value in objects.items():
        if not (hasattr(value, "state_dict") and hasattr(value, "load_state_dict")):
            raise TypeError(
                f"Manager: {name} is a {type(value).__name__}, expected something with state_dict "
                "and load_state_dict"
            )
    return objects
