"""One checkpoint: a folder of values, and a manifest of what is where."""

from __future__ import annotations

import json
import os
import threading
import zlib
from typing import Any, NamedTuple

from gt import _gt
from gt._gt import Tensor
from gt.formats import structure
from gt.formats.roots import workers_may_use, workers_read

#: What makes a folder a checkpoint; written last.
MANIFEST = "manifest.json"
_VERSION = 1


class CheckpointError(RuntimeError):
    """A checkpoint could not be written, or is broken."""


class Loaded(NamedTuple):
    """What a checkpoint holds."""

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

    def is_done(self) -> bool:
        """Say whether it is written, or has failed."""
        return not self._thread.is_alive()

    def wait(self) -> None:
        """Wait until it is on the disk.

        Raises:
            CheckpointError: it could not be written; what was there before is there still.
        """
        while self._thread.is_alive():
            self._thread.join(0.1)  # Ctrl-C is noticed in between.
        if self.error is not None:
            raise CheckpointError(
                f"checkpoint {self.folder} was not written: {self.error}"
            ) from self.error


def save(folder: Any, state: Any, *, step: int = 0, metadata: Any = None) -> Saving:
    """Write a state into a folder, in the background; the values are those of this moment.

    Args:
        folder: made if it is missing; a checkpoint in it is replaced.
        state: tensors, arrays, numbers and texts in dicts, lists and tuples, as for `gt.save`.
        step: the number of the training step.
        metadata: whatever JSON can hold.

    Returns:
        What `wait()` is called on to be sure that it is written.

    Raises:
        TypeError: there is something else in the state, or in the metadata.
    """
    folder = os.path.abspath(os.fspath(folder))
    text, tensors = structure.describe(state)
    manifest = _manifest(text, step, metadata)
    json.dumps(manifest)  # What cannot be written is an error now.
    values = [_gt.snapshot(tensor) for _, tensor in tensors]
    kinds = [
        (name, value.dtype.name, list(value.shape))
        for (name, _), value in zip(tensors, values, strict=True)
    ]
    _remove_manifest(folder)
    at_workers = workers_may_use(folder)
    asked = _gt.save_values(folder, values) if at_workers and values else None

    def write() -> None:
        if asked is not None:
            parts = asked.wait()
        elif values:
            parts = _gt.write_values(folder, values)
        else:
            os.makedirs(folder, exist_ok=True)
            parts = []
        manifest["tensors"] = _described(kinds, parts)
        _write_manifest(folder, manifest)

    return Saving(folder, write)


def load(folder: Any, *, verify: bool = True) -> Loaded:
    """Read a checkpoint: its state, step and metadata.

    Where the workers may use the folder, each reads only the part of a tensor that it is to hold.

    Args:
        folder: the checkpoint's.
        verify: whether the checksums of all values are compared first, where this process can
            read the files.

    Raises:
        CheckpointError: the folder is no checkpoint, or it is broken.
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
            return make(dtype, shape, where)
        except (OSError, ValueError) as error:
            raise CheckpointError(
                f"checkpoint {folder}: '{name}' cannot be read: {error}"
            ) from error

    known: dict[str, Tensor] = {}

    def once(name: str) -> Tensor:
        if name not in known:
            known[name] = tensor(name)
        return known[name]

    state = structure.rebuild(manifest["structure"], once, f"checkpoint {folder}")
    return Loaded(state, manifest["step"], manifest["metadata"])


def verify(folder: Any) -> None:
    """Compare the checksums of a checkpoint's values.

    Raises:
        CheckpointError: the folder is no checkpoint, or a file of it is missing, truncated or
            changed.
    """
    folder = os.path.abspath(os.fspath(folder))
    _verify(folder, read_manifest(folder))


def read_manifest(folder: str) -> dict[str, Any]:
    """Read what says what is where.

    Raises:
        CheckpointError: there is none, or it is broken.
    """
    path = os.path.join(folder, MANIFEST)
    try:
        with open(path, encoding="utf-8") as file:
            text, _, checksum = file.read().rpartition("\n")
    except OSError as error:
        raise CheckpointError(f"{folder} is no checkpoint: {error}") from error
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path} is broken: {error}") from error
    if checksum != _checksum(text):
        raise CheckpointError(f"{path} is broken: its checksum differs")
    try:
        manifest = json.loads(text)
        if manifest["format"] != "gt-checkpoint" or manifest["version"] != _VERSION:
            raise CheckpointError(
                f"{path}: {manifest['format']} of version {manifest['version']} is given, expected "
                f"gt-checkpoint of version {_VERSION}"
            )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{path} is broken: {error!r}") from error
    return manifest


def write_manifest(
    folder: str, structure: str, tensors: dict[str, Any], *, step: int, metadata: Any
) -> None:
    """Have a folder count as a checkpoint, whose values are written already.

    Args:
        folder: where the files with the values are.
        structure: what `structure.describe` gives.
        tensors: by name, what `read_manifest` gives as `"tensors"`.
        step: the number of the training step.
        metadata: whatever JSON can hold.
    """
    _write_manifest(folder, {**_manifest(structure, step, metadata), "tensors": tensors})


def _manifest(structure: str, step: int, metadata: Any) -> dict[str, Any]:
    return {
        "format": "gt-checkpoint",
        "version": _VERSION,
        "step": step,
        "metadata": metadata,
        "structure": structure,
    }


def _described(kinds: list[tuple[str, str, list[int]]], parts: list[tuple]) -> dict[str, Any]:
    """Say of each tensor what it is, and where its parts are."""
    told: list[dict[str, Any]] = [
        {"dtype": dtype, "shape": shape, "parts": []} for _, dtype, shape in kinds
    ]
    for index, file, offset, starts, shape, length, checksum in parts:
        told[index]["parts"].append(
            {
                "file": file,
                "offset": offset,
                "starts": list(starts),
                "shape": list(shape),
                "bytes": length,
                "crc32": checksum,
            }
        )
    return {name: one for (name, _, _), one in zip(kinds, told, strict=True)}


def _write_manifest(folder: str, manifest: dict[str, Any]) -> None:
    text = json.dumps(manifest)
    path = os.path.join(folder, MANIFEST)
    part = f"{path}.{os.getpid()}.part"
    try:
        with open(part, "w", encoding="utf-8") as file:
            file.write(f"{text}\n{_checksum(text)}")
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError:
        if os.path.exists(part):
            os.remove(part)
        raise
    for place in (folder, os.path.dirname(folder)):
        _sync_folder(place)


def _remove_manifest(folder: str) -> None:
    """Have a checkpoint that is to be replaced count no more."""
    try:
        os.remove(os.path.join(folder, MANIFEST))
    except (FileNotFoundError, NotADirectoryError):
        return
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    """Have a folder's entries written to the disk."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _checksum(text: str) -> str:
    return f"crc32 {zlib.crc32(text.encode()):08x}"


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
