"""Hugging Face folders as sources: safetensors or `.bin`, in one file or in shards."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial

import gt
from gt import _gt
from gt.convert.entries import Entry, Source
from gt.convert.errors import ConvertError
from gt.formats import pytorch

#: The index files of sharded weights, and the single files, in the order of preference.
_INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_SINGLES = ("model.safetensors", "pytorch_model.bin")

_AGAIN = "hint: the file was not copied or downloaded completely: get it again"


def open_folder(folder: str) -> Source:
    """Find the tensors of a folder, without reading their values.

    Raises:
        ConvertError: the folder has no weights, or a file is missing or broken.
    """
    for single in _SINGLES:
        index = f"{single}.index.json"
        if os.path.exists(os.path.join(folder, index)):
            return _open_index(folder, index)
        if os.path.exists(os.path.join(folder, single)):
            return Source(folder, _open_file(folder, single), False, {single})
    there = sorted(os.listdir(folder))
    safetensors = [name for name in there if name.endswith(".safetensors")]
    if len(safetensors) == 1:
        return Source(folder, _open_file(folder, safetensors[0]), False, {safetensors[0]})
    told = ", ".join(there[:8]) + (", ..." if len(there) > 8 else "")
    raise ConvertError(
        f"{folder}: no weights found, expected {', '.join((*_SINGLES, *_INDEXES))}, or a "
        f"checkpoint's manifest.json\n  hint: the folder contains {told or 'nothing'}"
    )


def _open_index(folder: str, index: str) -> Source:
    path = os.path.join(folder, index)
    try:
        with open(path, encoding="utf-8") as file:
            places = json.load(file)["weight_map"]
        files = sorted(set(places.values()))
        inside = all(os.path.basename(name) == name for name in files)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConvertError(f"{path}: not a valid index: {error!r}\n  {_AGAIN}") from error
    if not inside:
        raise ConvertError(f"{path}: it names files outside of its own folder: {files}")
    missing = [name for name in files if not os.path.exists(os.path.join(folder, name))]
    if missing:
        raise ConvertError(
            f"{path}: it names {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} "
            f"missing; {len(files) - len(missing)} of {len(files)} files exist\n"
            f"  hint: get the missing files too, or convert the original folder"
        )
    entries = []
    for name in files:
        wanted = [tensor for tensor, place in places.items() if place == name]
        found = {entry.name: entry for entry in _open_file(folder, name)}
        if lacking := [tensor for tensor in wanted if tensor not in found]:
            raise ConvertError(f"{path}: {name} lacks {', '.join(lacking[:5])}\n  {_AGAIN}")
        entries += [found[tensor] for tensor in wanted]
    return Source(folder, entries, False, {index, *files})


def _open_file(folder: str, name: str) -> list[Entry]:
    path = os.path.join(folder, name)
    opened: Callable[[str], list[Entry]] = _safetensors
    if name.endswith(".bin"):
        opened = _bin
    try:
        return opened(path)
    except (OSError, ValueError) as error:
        text = str(error) if path in str(error) else f"{path}: {error}"
        hint = "" if "hint:" in text else f"\n  {_AGAIN}"
        raise ConvertError(f"{text}{hint}") from error


def _safetensors(path: str) -> list[Entry]:
    file = _gt.SafetensorsFile(path)
    for name, dtype, _ in file.entries():
        if not hasattr(gt, dtype):
            raise ValueError(
                f"{path}: tensor '{name}' has dtype {dtype}, which GT does not have\n  hint: "
                "convert the file to one of its dtypes, such as BF16 or F32"
            )
    return [
        Entry(name, dtype, tuple(shape), partial(file.tensor, name))
        for name, dtype, shape in file.entries()
    ]


def _bin(path: str) -> list[Entry]:
    tensors = pytorch.places(path)
    first: dict[pytorch.Place, str] = {}
    entries = []
    for name, place in tensors.items():
        tied = first.setdefault(place, name)
        read = partial(pytorch.read_place, path, place)
        entries.append(Entry(name, place.dtype, place.size, read, tied if tied != name else None))
    return entries
