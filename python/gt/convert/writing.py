"""Targets of a conversion: shards of values, and the index or manifest that locates them."""

from __future__ import annotations

import json
import os
from typing import Any

from gt import _gt, safetensors
from gt.checkpoint.manifest import write_manifest
from gt.convert.entries import Entry


def write_folder(folder: str, entries: list[Entry], limit: int) -> None:
    """Write tensors in Hugging Face's layout: one safetensors file, or shards and an index.

    Args:
        folder: an existing folder.
        entries: the tensors to write.
        limit: the maximum number of bytes per file, unless a single tensor is larger.
    """
    shards = _shards(entries, limit)
    if len(shards) == 1:
        _write(os.path.join(folder, "model.safetensors"), shards[0])
        return
    places = {}
    for number, shard in enumerate(shards, 1):
        name = f"model-{number:05}-of-{len(shards):05}.safetensors"
        _write(os.path.join(folder, name), shard)
        places.update({entry.name: name for entry in shard})
    safetensors.write_index(folder, places, sum(entry.bytes for entry in entries))


def write_checkpoint(
    folder: str, entries: list[Entry], limit: int, metadata: dict[str, Any]
) -> None:
    """Write tensors as a checkpoint whose state is a dict of them, in files of at most `limit`."""
    own = [entry for entry in entries if entry.tied is None]
    tensors: dict[str, Any] = {}
    for number, shard in enumerate(_shards(own, limit), 1):
        path = os.path.join(folder, f"values-{number:05}.safetensors")
        _write(path, shard)
        tensors.update(_described(path, shard))
    items = [[e.name, {"is": "tensor", "name": e.tied or e.name}] for e in entries]
    structure = json.dumps({"is": "ordered_dict", "items": items})
    write_manifest(folder, structure, tensors, step=0, metadata=metadata)


def _shards(entries: list[Entry], limit: int) -> list[list[Entry]]:
    shards: list[list[Entry]] = [[]]
    size = 0
    for entry in entries:
        if shards[-1] and size + entry.bytes > limit:
            shards.append([])
            size = 0
        shards[-1].append(entry)
        size += entry.bytes
    return shards


def _write(path: str, shard: list[Entry]) -> None:
    safetensors.save_file({entry.name: entry.read() for entry in shard}, path, {"format": "pt"})


def _described(path: str, shard: list[Entry]) -> dict[str, Any]:
    """Return the manifest's entry for each tensor of a file."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    told = {}
    for entry in shard:
        start, end = header[entry.name]["data_offsets"]
        part = {
            "file": os.path.basename(path),
            "offset": 8 + length + start,
            "starts": [0] * len(entry.shape),
            "shape": list(entry.shape),
            "bytes": end - start,
            "crc32": _gt.file_checksum(path, 8 + length + start, end - start),
        }
        told[entry.name] = {"dtype": entry.dtype, "shape": list(entry.shape), "parts": [part]}
    return told
