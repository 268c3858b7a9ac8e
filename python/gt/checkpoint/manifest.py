"""The manifest of a checkpoint, which describes its tensors and locates their values."""

from __future__ import annotations

import json
import operator
import os
import zlib
from typing import Any

from gt.checkpoint.valid import check_manifest

#: The file that makes a folder a checkpoint; it is written last.
MANIFEST = "manifest.json"
_VERSION = 1


class CheckpointError(RuntimeError):
    """A checkpoint could not be written, or is broken."""

    __module__ = "gt.checkpoint"


def read_manifest(folder: str) -> dict[str, Any]:
    """Read and check the manifest of a checkpoint.

    Raises:
        CheckpointError: the manifest is missing or broken.
    """
    path = os.path.join(folder, MANIFEST)
    try:
        with open(path, encoding="utf-8") as file:
            text, _, checksum = file.read().rpartition("\n")
    except OSError as error:
        raise CheckpointError(f"{folder} is not a checkpoint: {error}") from None
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path} is broken: {error}") from None
    if checksum != _checksum(text):
        raise CheckpointError(f"{path} is broken: its checksum differs")
    try:
        manifest = json.loads(text)
        if manifest["format"] != "gt-checkpoint" or manifest["version"] != _VERSION:
            raise CheckpointError(
                f"{path}: format {manifest['format']} of version {manifest['version']}, expected "
                f"gt-checkpoint of version {_VERSION}"
            )
        check_manifest(manifest, folder)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        reason = error if type(error) is ValueError else repr(error)
        raise CheckpointError(f"{path} is broken: {reason}") from error
    return manifest


def write_manifest(
    folder: str, structure: str, tensors: dict[str, Any], *, step: int, metadata: Any
) -> None:
    """Write the manifest of a checkpoint whose values are already written.

    Args:
        folder: the folder that contains the files with the values.
        structure: the JSON returned by `structure.describe`.
        tensors: the entry of each tensor by name, as in `read_manifest(...)["tensors"]`.
        step: the number of the training step.
        metadata: any JSON value.
    """
    put_manifest(folder, {**new_manifest(structure, step, metadata), "tensors": tensors})
    sync(folder)


def new_manifest(structure: str, step: int, metadata: Any) -> dict[str, Any]:
    """Return a manifest without the entry `"tensors"`.

    Raises:
        TypeError: the step is not an integer, or the metadata is not a JSON value.
    """
    return {
        "format": "gt-checkpoint",
        "version": _VERSION,
        "step": whole_number(step),
        "metadata": _as_json(metadata),
        "structure": structure,
    }


def whole_number(step: Any) -> int:
    """Return a step as an int.

    Raises:
        TypeError: the step is not an integer.
    """
    try:
        return operator.index(step)
    except TypeError:
        kind = type(step).__name__
        raise TypeError(f"step is {step!r}, a {kind}, expected an integer") from None


def _as_json(metadata: Any) -> Any:
    """Return a copy of the metadata in the form in which it will be loaded."""
    try:
        return json.loads(json.dumps(metadata))
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(
            f"{_culprit(metadata, 'metadata')}, expected a JSON value: dicts with string keys, "
            f"lists, strings, numbers, True, False and None ({error})\n"
            "  hint: .item() or .tolist() converts arrays and tensors to numbers"
        ) from error


def _culprit(value: Any, where: str) -> str:
    """Return a description of the first part of a value that JSON cannot represent."""
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
            return f"{where}[{key!r}] contains itself, or is nested too deep"
    return f"{where} is a {type(value).__name__}"


def put_manifest(folder: str, manifest: dict[str, Any]) -> None:
    """Replace the manifest atomically.

    Raises:
        OSError: it could not be written; the previous one is kept.
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
    """Flush the directory entries of a checkpoint's folder, and its own entry, to the disk."""
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
