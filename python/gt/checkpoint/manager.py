"""The checkpoints of a training run."""

from __future__ import annotations

import os
import re
import shutil
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import gt
from gt.checkpoint.files import Saving, load, save
from gt.checkpoint.manifest import MANIFEST, CheckpointError, whole_number

_NAME = re.compile(r"step-([0-9]+)")


class Manager:
    """Writes a checkpoint now and then, keeps the newest, and goes on from the last one.

    Args:
        folder: where the checkpoints are; made if it is missing.
        keep: how many are kept, of those written last; None for all.
        every: `save(step)` writes at each multiple of this.
        objects: by name, what a checkpoint consists of: whatever has `state_dict` and
            `load_state_dict`, such as models, optimizers, schedulers and data loaders. They may be
            given to `save` and `restore_or_initialize` instead.

    A checkpoint that is found broken is renamed to `step-....broken` when a newer one is there.

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
        self._saved = 0  # The step that is being written.
        # The steps that were restored or written, in this order; those found broken.
        self._known: list[int] = []
        self._broken: set[int] = set()
        self._warned = False

    def steps(self) -> list[int]:
        """List the steps of the checkpoints that are complete."""
        return sorted(step for step in self._folders() if os.path.exists(self._manifest(step)))

    def path(self, step: int) -> str:
        """Give the folder of a step's checkpoint.

        Raises:
            TypeError: the step is no whole number.
            ValueError: it is negative.
        """
        if (step := whole_number(step)) < 0:
            raise ValueError(f"Manager: step is {step}, expected 0 or more")
        return os.path.join(self.folder, f"step-{step:09}")

    def _manifest(self, step: int) -> str:
        return os.path.join(self.path(step), MANIFEST)

    def _folders(self) -> list[int]:
        """List the steps that there are folders of, complete or not."""
        try:
            names = os.listdir(self.folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        steps = [(name, int(match[1])) for name in names if (match := _NAME.fullmatch(name))]
        return [step for name, step in steps if os.path.basename(self.path(step)) == name]

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

        Raises:
            TypeError: the step is no whole number, or JSON cannot hold the metadata.
            ValueError: the step is negative.
        """
        folder, step = self.path(step), whole_number(step)
        if not force and step % self.every:
            return None
        self._finish(warn=True)
        self._warn_of_newer(step)
        objects = self._objects | _checked(objects)
        state = {
            "objects": {name: value.state_dict() for name, value in objects.items()},
            "rng": gt.get_rng_state(),
        }
        self._saving = save(folder, state, step=step, metadata=metadata)
        self._saved = step
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
                self._broken.add(step)
                continue
            self._restore(objects, loaded.state, self.path(step))
            self.metadata = loaded.metadata
            self._note(step)
            return loaded.step
        if initialize is not None:
            initialize()
        return 0

    def _restore(self, objects: dict[str, Any], state: Any, folder: str) -> None:
        if not (isinstance(state, dict) and {"objects", "rng"} <= state.keys()):
            raise CheckpointError(
                f"checkpoint {folder} was not written by a Manager: it has no objects and rng\n"
                "  hint: gt.checkpoint.load gives its state"
            )
        states = state["objects"]
        if missing := sorted(set(objects) - set(states)):
            raise CheckpointError(
                f"checkpoint {folder} has no {', '.join(missing)}; it has {', '.join(states)}"
            )
        if ignored := sorted(set(states) - set(objects)):
            warnings.warn(
                f"checkpoint {folder} has {', '.join(ignored)}, too, which nothing was given for: "
                "not restored, and not part of what is saved from now on",
                stacklevel=3,
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
        self._note(self._saved)
        self._prune()

    def _note(self, step: int) -> None:
        """Remember a step as the one that was restored or written last."""
        self._known = [known for known in self._known if known != step] + [step]
        self._broken.discard(step)

    def _warn_of_newer(self, step: int) -> None:
        """Warn, once, of checkpoints of another run that this one would be mixed up with."""
        if self._warned:
            return
        others = set(self.steps()) - set(self._known) - self._broken
        if step > max(others, default=-1):
            return
        self._warned = True
        newest = max(others)
        fate = "all are kept" if self.keep is None else f"the last {self.keep} written are kept"
        warnings.warn(
            f"Manager: step {step} is saved, but {self.folder} has step {newest}, which was not "
            f"restored: {fate}, and restore_or_initialize takes step {newest} while it is there\n"
            "  hint: call restore_or_initialize first, or give a run of its own another folder",
            stacklevel=3,
        )

    def _prune(self) -> None:
        """Keep what was written last; put aside what is broken and what was not completed."""
        for step in self._broken:
            self._put_aside(step)
        self._broken.clear()
        steps = sorted(self.steps(), key=self._age)
        for step in steps[: -self.keep] if self.keep is not None else []:
            # Without its manifest, what is left of it if this is interrupted does not count.
            os.remove(self._manifest(step))
            shutil.rmtree(self.path(step), ignore_errors=True)
        kept = self.steps()
        self._known = [step for step in self._known if step in kept]
        # What an interrupted run has left.
        for step in set(self._folders()) - set(steps):
            shutil.rmtree(self.path(step), ignore_errors=True)

    def _age(self, step: int) -> tuple[int, int, int]:
        """Give what the checkpoints are ordered by: those of this run last, as it wrote them."""
        if step in self._known:
            return 1, self._known.index(step), step
        return 0, os.stat(self._manifest(step)).st_mtime_ns, step

    def _put_aside(self, step: int) -> None:
        """Have a broken checkpoint count no more, but be there to be looked at."""
        aside = f"{self.path(step)}.broken"
        shutil.rmtree(aside, ignore_errors=True)
        with suppress(OSError):
            os.rename(self.path(step), aside)

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
