"""GT checkpoints as sources of a conversion."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import Any

from gt import _gt
from gt._gt import Tensor
from gt.checkpoint import CheckpointError, verify
from gt.checkpoint.manifest import MANIFEST, read_manifest
from gt.convert.entries import Entry, Source
from gt.convert.errors import ConvertError


def is_checkpoint(folder: str) -> bool:
    """Return whether a folder is a GT checkpoint."""
    try:
        with open(os.path.join(folder, MANIFEST), encoding="utf-8") as file:
            return '"gt-checkpoint"' in file.read(1000)
    except (OSError, UnicodeDecodeError):
        return False


def open_checkpoint(folder: str, member: str) -> Source:
    """Find the tensors of a checkpoint, without converting their values.

    Args:
        folder: the checkpoint's folder.
        member: the name of the state to convert, if the checkpoint has several.

    Raises:
        ConvertError: the checkpoint is broken, or has no such state.
    """
    try:
        manifest = read_manifest(folder)
        verify(folder)
    except CheckpointError as error:
        raise ConvertError(
            f"{error}\n  hint: use an earlier checkpoint, or a copy of this one"
        ) from error
    items = _find_state(json.loads(manifest["structure"]), member, folder)
    stored = manifest["tensors"]
    first: dict[str, str] = {}
    entries = []
    for name, written in items.items():
        if not _is_tensor(written) or written.get("complex128"):
            raise ConvertError(
                f"{folder}: {name!r} cannot be stored in a Hugging Face folder: it is "
                f"{_told(written)}\n  hint: convert a checkpoint of model.state_dict() alone"
            )
        where = written["name"]
        tied = first.setdefault(where, name)
        entries.append(_entry(folder, name, stored[where], tied if tied != name else None))
    added = (manifest["metadata"] or {}).get("added", [])
    return Source(folder, entries, True, {MANIFEST, *_files(manifest)}, added)


def _find_state(written: Any, member: str, folder: str) -> dict[str, Any]:
    """Return the descriptions of a model's tensors by name.

    The tensors are the whole state, or a member of it, or a member of a `Manager`'s objects.
    """
    items = _items(written)
    members = _items(items.get("objects")) or items
    if any(_is_tensor(item) for item in members.values()):
        return members
    if member in members:
        return _items(members[member])
    names = [name for name, item in members.items() if _items(item)]
    if len(names) == 1:
        return _items(members[names[0]])
    raise ConvertError(
        f"{folder}: there is no state '{member}' in this checkpoint, it has "
        f"{', '.join(names) or 'no tensors by name'}\n  hint: --object names the one to convert"
    )


def _items(written: Any) -> dict[str, Any]:
    if not isinstance(written, dict) or written.get("is") not in ("dict", "ordered_dict"):
        return {}
    return {name: item for name, item in written["items"] if isinstance(name, str)}


def _is_tensor(written: Any) -> bool:
    return isinstance(written, dict) and written.get("is") in ("tensor", "array")


def _told(written: Any) -> str:
    if not isinstance(written, dict):
        return repr(written)
    return "of complex128" if written.get("complex128") else f"a {written['is']}"


def _files(manifest: dict[str, Any]) -> set[str]:
    """Return the names of the files and folders that contain the values."""
    return {
        part["file"].split("/")[0] for one in manifest["tensors"].values() for part in one["parts"]
    }


def _entry(folder: str, name: str, stored: dict[str, Any], tied: str | None) -> Entry:
    parts = [
        (os.path.join(folder, part["file"]), part["offset"], part["starts"], part["shape"])
        for part in stored["parts"]
    ]
    dtype, shape = stored["dtype"], tuple(stored["shape"])
    return Entry(name, dtype, shape, partial(_read, dtype, list(shape), parts), tied)


def _read(dtype: str, shape: list[int], parts: list[tuple[Any, ...]]) -> Tensor:
    return _gt.read_values(dtype, shape, parts)
