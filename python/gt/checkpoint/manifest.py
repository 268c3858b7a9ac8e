"""The manifest of a checkpoint: what is where, and what counts as valid."""

from __future__ import annotations

import json
import operator
import os
import zlib
from typing import Any

from gt.checkpoint.valid import check_manifest

#: What makes a folder a checkpoint; written last.
MANIFEST = "manifest.json"
_VERSION = 1


class CheckpointError(RuntimeError):
    """A checkpoint could not be written, or is broken."""


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
        check_manifest(manifest, folder)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        told = error if type(error) is ValueError else repr(error)
        raise CheckpointError(f"{path} is broken: {told}") from error
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
    put_manifest(folder, {**new_manifest(structure, step, metadata), "tensors": tensors})
    sync(folder)


def new_manifest(structure: str, step: int, metadata: Any) -> dict[str, Any]:
    """Give a manifest that says nothing of values yet.

    Raises:
        TypeError: the step is no whole number, or JSON cannot hold the metadata.
    """
    return {
        "format": "gt-checkpoint",
        "version": _VERSION,
        "step": whole_number(step),
        "metadata": _as_json(metadata),
        "structure": structure,
    }


def whole_number(step: Any) -> int:
    """Give a step as an int.

    Raises:
        TypeError: it is not a whole number.
    """
    try:
        return operator.index(step)
    except TypeError:
        kind = type(step).__name__
        raise TypeError(f"step is {step!r}, a {kind}, expected a whole number") from None


def _as_json(metadata: Any) -> Any:
    """Give metadata as they are now, as they will be loaded."""
    try:
        return json.loads(json.dumps(metadata))
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(
            f"{_culprit(metadata, 'metadata')}, expected what JSON can hold: dicts with texts as "
            f"keys, lists, texts, numbers, True, False and None ({error})\n"
            "  hint: .item() or .tolist() makes numbers of arrays and tensors"
        ) from error


def _culprit(value: Any, where: str) -> str:
    """Say what of a value JSON cannot hold."""
    inner: Any = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, (list, tuple)):
        inner = enumerate(value)
    for key, item in inner:
        try:
            json.dumps(item)
        except TypeError:
            return _culprit(item, f"{where}[{key!r}]")
        except (ValueError, RecursionError):
            return f"{where}[{key!r}] holds itself, or is too deep"
    return f"{where} is a {type(value).__name__}"


def put_manifest(folder: str, manifest: dict[str, Any]) -> None:
    """Put a manifest in the place of the one that is there, at once.

    Raises:
        OSError: it could not be written; the one before is there still.
    """
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


def sync(folder: str) -> None:
    """Have the entries of a checkpoint's folder, and its own, written to the disk."""
    for place in (folder, os.path.dirname(folder)):
        _sync_folder(place)


def _sync_folder(folder: str) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _checksum(text: str) -> str:
    return f"crc32 {zlib.crc32(text.encode()):08x}"
