"""Files of named tensors in the safetensors format, with the functions of that package.

>>> import tempfile, os
>>> path = os.path.join(tempfile.mkdtemp(), "weights.safetensors")
>>> gt.safetensors.save_file({"weight": gt.ones(2, 2)}, path)
>>> gt.safetensors.load_file(path)["weight"].shape
(2, 2)
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from gt import _gt
from gt._gt import Tensor
from gt._public import show_callers
from gt.formats.stored import StoredFile, check_plain_file

#: The file that maps tensors to the files of a folder.
INDEX = "model.safetensors.index.json"

#: The names of dtypes in files, by GT's names.
_NAMES = {
    "bool": "BOOL",
    "complex64": "C64",
    "bfloat16": "BF16",
    **{f"float{bits}": f"F{bits}" for bits in (16, 32, 64)},
    **{f"int{bits}": f"I{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"U{bits}" for bits in (8, 16, 32, 64)},
}


def load_file(filename: Any, device: Any = None) -> dict[str, Tensor]:
    """Load all tensors of a file; values are read from the file when they are used.

    Args:
        filename: a file, the index of a model in several files (`*.index.json`), or a folder with
            one of both.
        device: accepted for compatibility: all tensors are on the cluster.

    Raises:
        OSError: the file does not exist, or is no regular file but, for example, a pipe.
        ValueError: the file is broken or truncated, or the index does not fit.
        TypeError: GT does not have the dtype of a tensor.
    """
    path = os.fspath(filename)
    if os.path.isdir(path):
        path = _in_folder(path)
    check_plain_file(path)
    if path.endswith(".json"):
        return _load_index(path)
    file = StoredFile(path)
    return {name: file.tensor(name) for name in file.entries}


def load(data: bytes) -> dict[str, Tensor]:
    """Load all tensors from the bytes of a file."""
    file = _gt.SafetensorsFile.over(data)
    return {name: file.tensor(name) for name, _, _ in file.entries()}


def save_file(
    tensors: dict[str, Tensor], filename: Any, metadata: dict[str, str] | None = None
) -> None:
    """Write tensors into a file, which appears under its name once it is complete.

    Args:
        tensors: tensors by name.
        filename: the file; an existing file is replaced.
        metadata: texts that are stored with the tensors.

    Raises:
        TypeError: a value is not a tensor.
        ValueError: the format does not have the dtype complex128, or a name is no valid Unicode.
        OSError: the file cannot be written; an existing file is kept.
    """
    _gt.write_safetensors(os.fspath(filename), _items(tensors), metadata or {})


def save(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """Return the bytes of a file with the given tensors."""
    return _gt.safetensors_bytes(_items(tensors), metadata or {})


def save_sharded(
    tensors: dict[str, Tensor],
    folder: Any,
    max_shard_bytes: int = 5 * 10**9,
    metadata: dict[str, str] | None = None,
) -> None:
    """Write tensors into several files of a folder, and the index that other programs read.

    Args:
        tensors: tensors by name.
        folder: the folder; created if it is missing.
        max_shard_bytes: the most bytes of tensors in a file, unless one tensor alone is larger.
        metadata: texts that are stored in each file; `format` is "pt" unless given.
    """
    folder = os.fspath(folder)
    os.makedirs(folder, exist_ok=True)
    metadata = {"format": "pt", **(metadata or {})}
    shards: list[dict[str, Tensor]] = [{}]
    size = 0
    for name, tensor in tensors.items():
        length = tensor.numel() * tensor.dtype.itemsize
        if shards[-1] and size + length > max_shard_bytes:
            shards.append({})
            size = 0
        shards[-1][name] = tensor
        size += length
    if len(shards) == 1:
        save_file(tensors, os.path.join(folder, "model.safetensors"), metadata)
        return
    places, total = {}, 0
    for number, shard in enumerate(shards, 1):
        file = f"model-{number:05}-of-{len(shards):05}.safetensors"
        save_file(shard, os.path.join(folder, file), metadata)
        places.update(dict.fromkeys(shard, file))
        total += sum(tensor.numel() * tensor.dtype.itemsize for tensor in shard.values())
    write_index(folder, places, total)


def write_index(folder: Any, places: dict[str, str], total_size: int) -> None:
    """Write the index, which maps tensors to the files of a folder.

    Args:
        folder: the folder of the files.
        places: the name of the file of each tensor.
        total_size: the size of all tensors in bytes.
    """
    folder = os.fspath(folder)
    index = {"metadata": {"total_size": total_size}, "weight_map": places}
    part = os.path.join(folder, f".{INDEX}.{os.getpid()}.part")
    with open(part, "w", encoding="utf-8") as written:
        json.dump(index, written, indent=2)
        written.flush()
        os.fsync(written.fileno())
    os.replace(part, os.path.join(folder, INDEX))


class safe_open:
    """A file whose tensors are loaded one by one.

    Args:
        filename: the file.
        framework: accepted for compatibility: tensors are GT's.
        device: accepted for compatibility: all tensors are on the cluster.

    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "weights.safetensors")
    >>> gt.safetensors.save_file({"weight": gt.ones(4, 2)}, path)
    >>> with gt.safetensors.safe_open(path) as file:
    ...     file.get_slice("weight")[1:3].shape
    (2, 2)
    """

    def __init__(self, filename: Any, framework: str = "gt", device: Any = None):
        self._file = StoredFile(os.fspath(filename))

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *exception: Any) -> None:
        pass

    def keys(self) -> list[str]:
        """Return the names, sorted."""
        return sorted(self._file.entries)

    def offset_keys(self) -> list[str]:
        """Return the names in the order of the values in the file."""
        return list(self._file.entries)

    def metadata(self) -> dict[str, str] | None:
        """Return the texts that are stored with the tensors, or None."""
        return self._file.metadata or None

    def get_tensor(self, name: str) -> Tensor:
        """Return the tensor of a name."""
        return self._file.tensor(name)

    def get_slice(self, name: str) -> Slice:
        """Return an object whose index loads a part of a tensor."""
        if name not in self._file.entries:
            self._file.tensor(name)
        return Slice(self._file, name, *self._file.entries[name])


class Slice:
    """A tensor of a file; an index reads only a part of it."""

    def __init__(self, file: StoredFile, name: str, dtype: str, shape: tuple[int, ...]):
        self._file, self._name, self._dtype, self._shape = file, name, dtype, shape

    def get_shape(self) -> list[int]:
        """Return the length of each axis."""
        return list(self._shape)

    def get_dtype(self) -> str:
        """Return the dtype's name in the file, such as `"F32"`."""
        return _NAMES.get(self._dtype, self._dtype)

    def __getitem__(self, index: Any) -> Tensor:
        first, *others = index if isinstance(index, tuple) else (index,)
        if not self._shape or not isinstance(first, slice):
            return self._file.tensor(self._name)[index]
        start, end, step = first.indices(self._shape[0])
        if step != 1:
            return self._file.tensor(self._name)[index]
        rows = self._file.rows(self._name, start, max(start, end))
        rest = (slice(None), *others)
        return rows[rest] if others else rows


def _items(tensors: dict[str, Tensor]) -> list[tuple[str, Tensor]]:
    if not isinstance(tensors, dict):
        raise TypeError(f"save: tensors must be a dict by name, not {type(tensors).__name__}")
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise TypeError(
                f"save: {name!r} is a {type(tensor).__name__}, expected a name and a tensor"
            )
        if not _is_unicode(name):
            raise ValueError(f"save: the name {name!r} is no valid Unicode, as the format needs")
    return [(name, tensor.detach()) for name, tensor in tensors.items()]


def _is_unicode(name: str) -> bool:
    """Return whether a text can be encoded: it has no lone surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _in_folder(folder: str) -> str:
    """Return the path of a folder's index, or else of its only file of tensors."""
    for name in (INDEX, "model.safetensors"):
        if os.path.exists(os.path.join(folder, name)):
            return os.path.join(folder, name)
    found = sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))
    if len(found) == 1:
        return os.path.join(folder, found[0])
    raise FileNotFoundError(
        f"{folder}: neither {INDEX} nor model.safetensors exists; found {found or None}"
    )


def _load_index(path: str) -> dict[str, Tensor]:
    with open(path, encoding="utf-8") as file:
        try:
            places = json.load(file)["weight_map"]
            files = sorted(set(places.values()))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{path}: no valid index: {error!r}") from error
    return _load_parts(path, places, files)


def _load_parts(path: str, places: dict[str, str], files: Iterable[str]) -> dict[str, Tensor]:
    folder, tensors = os.path.dirname(path), {}
    for name in files:
        if not isinstance(name, str) or os.path.basename(name) != name:
            raise ValueError(f"{path}: it names {name!r}, which is not a file in its own folder")
        file = StoredFile(os.path.join(folder, name))
        wanted = [entry for entry, place in places.items() if place == name]
        if missing := [entry for entry in wanted if entry not in file.entries]:
            raise ValueError(f"{path}: {name} lacks {', '.join(missing[:5])}")
        tensors.update({entry: file.tensor(entry) for entry in wanted})
    return {name: tensors[name] for name in places}


show_callers(globals())
