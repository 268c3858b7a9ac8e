"""The checks of a manifest, made before it is used to read values."""

from __future__ import annotations

import math
import os
from itertools import islice
from typing import Any

from gt import _gt

#: The bound of sizes and offsets: 64-bit integers can represent them and their sums.
_LIMIT = 1 << 62


def check_manifest(manifest: Any, folder: str) -> None:
    """Check a manifest whose format and version are known.

    The parts of each tensor must cover it exactly once, in files in the checkpoint's folder.

    Args:
        manifest: the parsed manifest.
        folder: the checkpoint's folder.

    Raises:
        ValueError: an entry is missing or invalid; the message names it.
    """
    _entry(manifest, "metadata", object, "the manifest")
    _entry(manifest, "step", int, "the manifest")
    _entry(manifest, "structure", str, "the manifest")
    files: set[str] = set()
    for name, tensor in _entry(manifest, "tensors", dict, "the manifest").items():
        files |= _check_tensor(tensor, f"tensor '{name}'")
    for file in sorted(files):
        _check_place(file, folder)


def _entry(given: Any, key: str, kind: type, where: str) -> Any:
    """Return a required entry of a dict, which must be of type `kind`."""
    if not isinstance(given, dict) or key not in given:
        raise ValueError(f"{where} has no {key}")
    value = given[key]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{key} of {where} is {value!r:.80}, expected a {kind.__name__}")
    return value


def _size(given: Any, key: str, where: str) -> int:
    value = _entry(given, key, int, where)
    if not 0 <= value < _LIMIT:
        raise ValueError(f"{key} of {where} is {value}, expected 0 or more, and less than 2**62")
    return value


def _sizes(given: Any, key: str, where: str) -> list[int]:
    values = _entry(given, key, list, where)
    if not all(type(value) is int and 0 <= value < _LIMIT for value in values):
        raise ValueError(f"{key} of {where} is {values!r:.80}, expected integers of 0 or more")
    return values


def _check_tensor(tensor: Any, where: str) -> set[str]:
    """Check a tensor; return the files that contain its parts."""
    shape = _sizes(tensor, "shape", where)
    try:
        item = _gt.parse_dtype(_entry(tensor, "dtype", str, where)).itemsize
    except TypeError as error:
        raise ValueError(f"dtype of {where}: {error}") from error
    count = math.prod(shape)
    if count * item >= _LIMIT:
        raise ValueError(f"{where} of shape {shape} would have {count * item} bytes")
    parts = _entry(tensor, "parts", list, where)
    blocks = [_check_part(part, shape, item, where) for part in parts]
    blocks = [(starts, sizes) for starts, sizes in blocks if math.prod(sizes)]
    found = sum(math.prod(sizes) for _, sizes in blocks)
    if found != count or (shape and _overlap(blocks, len(shape))):
        raise ValueError(
            f"the parts of {where} overlap, or do not cover it: they have {found} of its "
            f"{count} elements"
        )
    return {part["file"] for part in parts}


def _check_part(part: Any, shape: list[int], item: int, where: str) -> tuple[list[int], list[int]]:
    """Check a part of a tensor; return where it starts in the tensor, and its shape."""
    where = f"a part of {where}"
    _entry(part, "file", str, where)
    _size(part, "offset", where)
    _size(part, "crc32", where)
    starts, sizes = _sizes(part, "starts", where), _sizes(part, "shape", where)
    fits = len(starts) == len(sizes) == len(shape)
    if not fits or any(a + n > all_ for a, n, all_ in zip(starts, sizes, shape, strict=True)):
        raise ValueError(f"{where} of shape {sizes} at {starts} is not inside of shape {shape}")
    if _size(part, "bytes", where) != math.prod(sizes) * item:
        raise ValueError(
            f"{where} of shape {sizes} has {part['bytes']} bytes, expected "
            f"{math.prod(sizes) * item}"
        )
    return starts, sizes


def _overlap(blocks: list[tuple[list[int], list[int]]], rank: int) -> bool:
    """Return whether blocks share elements, comparing only blocks that overlap along one axis."""
    axis = max(range(rank), key=lambda at: len({starts[at] for starts, _ in blocks}))
    blocks = sorted(blocks, key=lambda block: block[0][axis])
    for index, (starts, sizes) in enumerate(blocks):
        for others, other_sizes in islice(blocks, index + 1, None):
            if others[axis] >= starts[axis] + sizes[axis]:
                break
            if all(
                a < b + m and b < a + n
                for a, n, b, m in zip(starts, sizes, others, other_sizes, strict=True)
            ):
                return True
    return False


def _check_place(file: str, folder: str) -> None:
    """Raise a ValueError unless a file is in a folder, also after resolving symbolic links."""
    names = file.split("/")
    inside = not any(name in ("", ".", "..") or "\0" in name for name in names)
    if inside:
        root = os.path.realpath(folder)
        inside = os.path.commonpath([root, os.path.realpath(os.path.join(root, file))]) == root
    if not inside:
        raise ValueError(f"file {file!r:.80} is outside of the checkpoint's folder")
