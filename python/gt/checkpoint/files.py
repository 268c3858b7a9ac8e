"""One checkpoint: a folder of values, and a manifest that locates them."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from gt import _gt
from gt._gt import Tensor
from gt.checkpoint.manifest import (
    CheckpointError,
    new_manifest,
    put_manifest,
    read_manifest,
    sync,
)
from gt.formats import structure
from gt.formats.roots import workers_may_use, workers_read

#: Names in a checkpoint's folder: folders of values, files of values of earlier versions and of
#: `gt.convert`, and files that a killed process left unfinished.
_VALUES_FOLDER = re.compile(r"values-[0-9a-f]{16}")
_VALUES_FILE = re.compile(r"values-(\d{5}|client)\.safetensors")
_UNFINISHED = re.compile(r"manifest\.json\.\d+\.part|\.values-.*\.safetensors\..*\.part")


class Loaded(NamedTuple):
    """The contents of a checkpoint."""

    state: Any
    step: int
    metadata: Any


class Saving:
    """A checkpoint that is being written in the background."""

    def __init__(self, folder: str, write: Any):
        self.folder = folder
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(write,), name="gt-checkpoint")
        self._thread.start()

    def _run(self, write: Any) -> None:
        try:
            write()
        except BaseException as error:
            self.error = error

    def _finish(self) -> None:
        """Wait until the checkpoint is written or has failed."""
        while self._thread.is_alive():
            self._thread.join(0.1)  # With a timeout, so that Ctrl-C can interrupt the wait.

    def is_done(self) -> bool:
        """Return whether the checkpoint is written or has failed."""
        return not self._thread.is_alive()

    def wait(self) -> None:
        """Wait until the checkpoint is on the disk.

        Raises:
            CheckpointError: it could not be written; an earlier checkpoint in the folder is kept.
        """
        self._finish()
        if self.error is not None:
            raise CheckpointError(
                f"checkpoint {self.folder} was not written: {self.error}"
            ) from None


def save(folder: Any, state: Any, *, step: int = 0, metadata: Any = None) -> Saving:
    """Write a state into a folder in the background, with the values it has now.

    Args:
        folder: the folder, which is created if it is missing. A checkpoint in it is replaced once
            the new one is complete, so the disk must have room for both. If another checkpoint is
            being written to the folder, this call waits for it first.
        state: tensors, arrays, numbers and strings in dicts, lists and tuples, as for `gt.save`.
        step: the number of the training step.
        metadata: any JSON value.

    Returns:
        A handle, whose `wait()` returns when the checkpoint is on the disk.

    Raises:
        TypeError: the state or the metadata contains an unsupported value.
    """
    folder = os.path.abspath(os.fspath(folder))
    text, tensors = structure.describe(state)
    manifest = new_manifest(text, step, metadata)
    values = [_gt.snapshot(tensor) for _, tensor in tensors]
    kinds = [
        (name, value.dtype.name, list(value.shape))
        for (name, _), value in zip(tensors, values, strict=True)
    ]
    return _in_turn(folder, lambda: _begin(folder, manifest, kinds, values))


#: The last `Saving` of each folder, as long as the caller or its thread refers to it.
_under_way: WeakValueDictionary[str, Saving] = WeakValueDictionary()
_turn = threading.Lock()


def _in_turn(folder: str, begin: Callable[[], Saving]) -> Saving:
    """Start writing to a folder when the previous write to it has finished."""
    place = os.path.realpath(folder)
    while True:
        with _turn:
            before = _under_way.get(place)
            if before is None or before.is_done():
                _under_way[place] = saving = begin()
                return saving
        before._finish()


def _begin(
    folder: str,
    manifest: dict[str, Any],
    kinds: list[tuple[str, str, list[int]]],
    values: list[Tensor],
) -> Saving:
    """Write the values to a new folder inside `folder`; then replace the manifest."""
    name = f"values-{secrets.token_hex(8)}"
    inner = os.path.join(folder, name)
    asked = _gt.save_values(inner, values) if values and workers_may_use(folder) else None

    def write() -> None:
        try:
            if asked is not None:
                parts = asked.wait()
            else:
                os.makedirs(folder, exist_ok=True)
                parts = _gt.write_values(inner, values) if values else []
            manifest["tensors"] = _described(kinds, parts, name)
            sync(folder)  # The values must be on the disk before the manifest that names them.
            put_manifest(folder, manifest)
        except BaseException:
            shutil.rmtree(inner, ignore_errors=True)
            raise
        sync(folder)
        _remove_others(folder, name)

    return Saving(folder, write)


def _remove_others(folder: str, current: str) -> None:
    """Remove the values of a replaced checkpoint, and the files of unfinished ones."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if _VALUES_FOLDER.fullmatch(name) and name != current:
            shutil.rmtree(path, ignore_errors=True)
        elif _VALUES_FILE.fullmatch(name) or _UNFINISHED.fullmatch(name):
            with suppress(OSError):
                os.remove(path)


def load(folder: Any, *, verify: bool = True) -> Loaded:
    """Read a checkpoint: its state, step and metadata.

    If the workers may use the folder, each worker reads only its shard of a tensor.

    Args:
        folder: the checkpoint's folder.
        verify: whether this process first compares the checksums of all values.

    Raises:
        CheckpointError: the folder is not a checkpoint, or the checkpoint is broken.
    """
    folder = os.path.abspath(os.fspath(folder))
    manifest = read_manifest(folder)
    if verify:
        _verify(folder, manifest)
    make = _gt.load_values if workers_read(folder) else _gt.read_values
    tensors = manifest["tensors"]

    def tensor(name: str) -> Tensor:
        dtype, shape, parts = tensors[name]["dtype"], tensors[name]["shape"], tensors[name]["parts"]
        where = [
            (os.path.join(folder, p["file"]), p["offset"], p["starts"], p["shape"]) for p in parts
        ]
        try:
            _check_lengths(folder, parts)
            return make(dtype, shape, where)
        except (OSError, ValueError, OverflowError, MemoryError) as error:
            raise CheckpointError(
                f"checkpoint {folder}: '{name}' cannot be read: {error}"
            ) from error

    known: dict[str, Tensor] = {}

    def once(name: str) -> Tensor:
        if name not in known:
            known[name] = tensor(name)
        return known[name]

    try:
        state = structure.rebuild(manifest["structure"], once, f"checkpoint {folder}")
    except (ValueError, IndexError, OverflowError) as error:
        raise CheckpointError(str(error)) from None
    return Loaded(state, manifest["step"], manifest["metadata"])


def _check_lengths(folder: str, parts: list[dict[str, Any]]) -> None:
    """Raise a ValueError if a file that this process can see is shorter than the manifest says.

    This prevents allocations of a size that only a broken manifest states.
    """
    for part in parts:
        path = os.path.join(folder, part["file"])
        if os.path.exists(path) and os.path.getsize(path) < part["offset"] + part["bytes"]:
            raise ValueError(f"{path} is truncated")


def verify(folder: Any) -> None:
    """Compare the checksums of a checkpoint's values.

    Raises:
        CheckpointError: the folder is not a checkpoint, or one of its files is missing, truncated
            or changed.
    """
    folder = os.path.abspath(os.fspath(folder))
    _verify(folder, read_manifest(folder))


def _described(
    kinds: list[tuple[str, str, list[int]]], parts: list[tuple[Any, ...]], inner: str
) -> dict[str, Any]:
    """Return the manifest's entry for each tensor: dtype, shape and the location of its parts."""
    told: list[dict[str, Any]] = [
        {"dtype": dtype, "shape": shape, "parts": []} for _, dtype, shape in kinds
    ]
    for index, file, offset, starts, shape, length, checksum in parts:
        told[index]["parts"].append(
            {
                "file": f"{inner}/{file}",
                "offset": offset,
                "starts": list(starts),
                "shape": list(shape),
                "bytes": length,
                "crc32": checksum,
            }
        )
    return {name: one for (name, _, _), one in zip(kinds, told, strict=True)}


def _verify(folder: str, manifest: dict[str, Any]) -> None:
    for name, tensor in manifest["tensors"].items():
        for part in tensor["parts"]:
            path = os.path.join(folder, part["file"])
            try:
                found = _gt.file_checksum(path, part["offset"], part["bytes"])
            except OSError as error:
                raise CheckpointError(
                    f"checkpoint {folder}: '{name}' cannot be read: {error}"
                ) from error
            if found != part["crc32"]:
                raise CheckpointError(
                    f"checkpoint {folder}: the values of '{name}' in {part['file']} have changed: "
                    "their checksum differs"
                )
