"""The checkpoints of a training run."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import gt
from gt._lines import warn
from gt.checkpoint.files import Saving, load, save
from gt.checkpoint.manifest import MANIFEST, CheckpointError, whole_number

_NAME = re.compile(r"step-([0-9]+)")


class Manager:
    """The checkpoints of a training run: writes them, keeps the newest, restores the last one.

    Args:
        folder: the folder of the checkpoints, which is created if it is missing.
        keep: the number of checkpoints to keep, of those written last; None for all.
        every: `save(step)` writes a checkpoint at each multiple of this.
        objects: the named objects whose states make up a checkpoint. Each has `state_dict` and
            `load_state_dict`, such as models, optimizers, schedulers and data loaders. They may
            also be passed to `save` and `restore_or_initialize`.

    A broken checkpoint is renamed to `step-....broken` once a newer one is written.

    The state of this thread's random number generator is part of every checkpoint.
    """

    def __init__(self, folder: Any, keep: int | None = 3, every: int = 1, **objects: Any):
        if keep is not None and keep < 1:
            raise ValueError(f"Manager: keep is {keep}, expected 1 or more, or None for all")
        if every < 1:
            raise ValueError(f"Manager: every is {every}, expected 1 or more")
        self.folder: str = os.path.abspath(os.fspath(folder))
        self.keep, self.every, self._objects = keep, every, _checked(objects)
        #: The metadata of the checkpoint that was restored.
        self.metadata: Any = None
        self._saving: Saving | None = None
        self._saved = 0  # The step that is being written.
        # The steps that were restored or written by this manager, in this order.
        self._known: list[int] = []
        # The steps whose checkpoints are broken.
        self._broken: set[int] = set()
        self._warned = False

    def steps(self) -> list[int]:
        """Return the steps of all complete checkpoints, in ascending order."""
        return sorted(step for step in self._folders() if os.path.exists(self._manifest(step)))

    def path(self, step: int) -> str:
        """Return the folder of a step's checkpoint.

        Raises:
            TypeError: the step is not an integer.
            ValueError: the step is negative.
        """
        if (step := whole_number(step)) < 0:
            raise ValueError(f"Manager: step is {step}, expected 0 or more")
        return os.path.join(self.folder, f"step-{step:09}")

    def _manifest(self, step: int) -> str:
        return os.path.join(self.path(step), MANIFEST)

    def _folders(self) -> list[int]:
        """Return the steps that have a folder, with or without a complete checkpoint."""
        try:
            names = os.listdir(self.folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        steps = [(name, int(match[1])) for name in names if (match := _NAME.fullmatch(name))]
        return [step for name, step in steps if os.path.basename(self.path(step)) == name]

    def latest(self) -> int | None:
        """Return the highest step that has a complete checkpoint, or None."""
        steps = self.steps()
        return steps[-1] if steps else None

    def save(
        self, step: int, *, metadata: Any = None, force: bool = False, **objects: Any
    ) -> Saving | None:
        """Write a checkpoint in the background if `step` is a multiple of `every`.

        It first waits until the previous checkpoint is on the disk, and warns if that failed.

        Args:
            step: the number of steps done.
            metadata: any JSON value.
            force: whether to write a checkpoint at any step.
            objects: named objects, as for the constructor.

        Returns:
            A handle to wait for the checkpoint; None if none is due.

        Raises:
            TypeError: the step is not an integer, or the metadata is not a JSON value.
            ValueError: the step is negative.
        """
        folder, step = self.path(step), whole_number(step)
        if not force and step % self.every:
            return None
        self._finish(warns=True)
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
        self._finish(warns=False)

    def restore_or_initialize(
        self, initialize: Callable[[], Any] | None = None, **objects: Any
    ) -> int:
        """Restore the newest valid checkpoint, or call `initialize` if there is none.

        A broken checkpoint causes a warning, and the previous one is tried.

        Args:
            initialize: called if there is no valid checkpoint.
            objects: named objects to restore, as for the constructor.

        Returns:
            The number of steps done: 0 without a checkpoint.
        """
        objects = self._objects | _checked(objects)
        self._finish(warns=True)
        for step in reversed(self.steps()):
            try:
                loaded = load(self.path(step))
            except CheckpointError as error:
                warn(f"{error}\n  hint: trying the previous checkpoint")
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
                "  hint: gt.checkpoint.load returns its state"
            )
        states = state["objects"]
        if missing := sorted(set(objects) - set(states)):
            raise CheckpointError(
                f"checkpoint {folder} has no {', '.join(missing)}; it has {', '.join(states)}"
            )
        if ignored := sorted(set(states) - set(objects)):
            warn(
                f"checkpoint {folder} also has {', '.join(ignored)}, for which no object was "
                "given: not restored, and not part of later checkpoints",
            )
        for name, value in objects.items():
            value.load_state_dict(states[name])
        gt.set_rng_state(state["rng"])

    def _finish(self, warns: bool) -> None:
        """Wait for the checkpoint that is being written; then remove old ones."""
        saving = self._saving
        if saving is None:
            return
        self._saving = None
        try:
            saving.wait()
        except CheckpointError as error:
            if not os.path.exists(os.path.join(saving.folder, MANIFEST)):
                shutil.rmtree(saving.folder, ignore_errors=True)
            if not warns:
                raise
            warn(str(error))
            return
        self._note(self._saved)
        self._prune()

    def _note(self, step: int) -> None:
        """Record a step as the last one restored or written."""
        self._known = [known for known in self._known if known != step] + [step]
        self._broken.discard(step)

    def _warn_of_newer(self, step: int) -> None:
        """Warn, once, if the folder has newer checkpoints that this run did not restore."""
        if self._warned:
            return
        others = set(self.steps()) - set(self._known) - self._broken
        if step > max(others, default=-1):
            return
        self._warned = True
        newest = max(others)
        fate = "all are kept" if self.keep is None else f"the last {self.keep} written are kept"
        warn(
            f"Manager: step {step} is saved, but {self.folder} has step {newest}, which was not "
            f"restored: {fate}, and restore_or_initialize restores step {newest} while it exists\n"
            "  hint: call restore_or_initialize first, or use another folder for a new run",
        )

    def _prune(self) -> None:
        """Remove old and incomplete checkpoints, and rename broken ones."""
        for step in self._broken:
            self._put_aside(step)
        self._broken.clear()
        steps = sorted(self.steps(), key=self._age)
        for step in steps[: -self.keep] if self.keep is not None else []:
            # The manifest first: if this is interrupted, the rest is not a checkpoint.
            os.remove(self._manifest(step))
            shutil.rmtree(self.path(step), ignore_errors=True)
        kept = self.steps()
        self._known = [step for step in self._known if step in kept]
        # Remove the incomplete checkpoints of interrupted runs.
        for step in set(self._folders()) - set(steps):
            shutil.rmtree(self.path(step), ignore_errors=True)

    def _age(self, step: int) -> tuple[int, int, int]:
        """Return the sort key of a checkpoint: those of this run are last, in order of writing."""
        if step in self._known:
            return 1, self._known.index(step), step
        return 0, os.stat(self._manifest(step)).st_mtime_ns, step

    def _put_aside(self, step: int) -> None:
        """Rename a broken checkpoint, so that it is ignored but can be inspected."""
        aside = f"{self.path(step)}.broken"
        shutil.rmtree(aside, ignore_errors=True)
        with suppress(OSError):
            os.rename(self.path(step), aside)

    def __enter__(self) -> Manager:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._finish(warns=exception[0] is not None)


def _checked(objects: dict[str, Any]) -> dict[str, Any]:
    for name, value in objects.items():
        if not (hasattr(value, "state_dict") and hasattr(value, "load_state_dict")):
            raise TypeError(
                f"Manager: {name} is a {type(value).__name__}, expected something with state_dict "
                "and load_state_dict"
            )
    return objects
