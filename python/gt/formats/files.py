"""`gt.save` and `gt.load`."""

from __future__ import annotations

import os
from typing import Any

from gt import _gt
from gt._gt import Tensor
from gt.formats import npz, pytorch, structure
from gt.formats.stored import StoredFile, check_plain_file

#: The text of a file's header that says how its tensors belong together.
_STRUCTURE = "gt.structure"


def save(obj: Any, f: Any) -> None:
    """Write tensors, and containers of them, into a file; it is there once it is complete.

    The file is in the safetensors format, so that other programs can read its tensors: a state dict
    has the names of its parameters. A path that ends in `.npz` gets NumPy's format.

    Args:
        obj: a tensor; or tensors, arrays, numbers, texts and bytes in dicts, lists, tuples, sets.
        f: a path, or a file open for writing bytes.

    Raises:
        TypeError: there is something else in `obj`; the text says where.
        ValueError: a container holds itself, or stands too deep in others.
        OSError: the file cannot be written. What was there before is there still.

    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "state.gt")
    >>> gt.save({"step": 3, "weight": gt.ones(2)}, path)
    >>> gt.load(path)
    {'step': 3, 'weight': tensor([1., 1.], dtype=float32)}
    """
    if not hasattr(f, "write") and os.fspath(f).endswith(".npz"):
        npz.save(obj, os.fspath(f))
        return
    text, tensors = structure.describe(obj)
    if hasattr(f, "write"):
        f.write(_gt.safetensors_bytes(tensors, {_STRUCTURE: text}))
    else:
        _gt.write_safetensors(os.fspath(f), tensors, {_STRUCTURE: text})


def load(f: Any, map_location: Any = None, *, weights_only: bool = True, mmap: Any = None) -> Any:
    """Read a file: GT's own, safetensors (also in parts, by its index), `.npz` or PyTorch's `.pt`.

    Nothing in a file is ever executed. Of PyTorch's files, tensors, containers and plain values are
    read; others are an error that names them.

    Args:
        f: a path, or a file open for reading bytes.
        map_location: accepted as PyTorch's: all tensors are on the cluster.
        weights_only: accepted as PyTorch's: nothing but weights and plain values is ever read.
        mmap: accepted as PyTorch's: values of safetensors are read where they are used.

    Raises:
        OSError: there is no such file, or it is no plain file, such as a pipe.
        ValueError: it is of no known format, broken, or has objects in it that are not read.
    """
    if hasattr(f, "read"):
        return _load_open(f)
    path = os.fspath(f)
    if os.path.isdir(path) or path.endswith(".index.json"):
        from gt import safetensors

        return safetensors.load_file(path)
    check_plain_file(path)
    with open(path, "rb") as file:
        start = file.read(9)
    if start.startswith(b"PK"):
        return _load_zip(path, path)
    if not _may_be_safetensors(start):
        raise ValueError(_unknown(path, start))
    stored = StoredFile(path)
    return _structured(stored, list(stored.entries), path)


def _load_open(file: Any) -> Any:
    name = str(getattr(file, "name", "the given file"))
    start = file.read(9)
    rest = file.read()
    if start.startswith(b"PK"):
        import io

        return _load_zip(io.BytesIO(start + rest), name)
    if not _may_be_safetensors(start):
        raise ValueError(_unknown(name, start))
    given = _gt.SafetensorsFile.over(start + rest)
    return _structured(given, [entry for entry, _, _ in given.entries()], name)


def _may_be_safetensors(start: bytes) -> bool:
    """Say whether a header in JSON follows the eight bytes of its length."""
    return start[8:9] == b"{"


def _load_zip(file: Any, name: str) -> Any:
    if pytorch.is_file(file):
        return pytorch.load(file, name)
    return npz.load(file, name)


def _structured(file: Any, entries: list[str], name: str) -> Any:
    text = file.metadata.get(_STRUCTURE)
    if text is None:
        return {entry: file.tensor(entry) for entry in entries}
    known: dict[str, Tensor] = {}

    def tensor(entry: str) -> Tensor:
        if entry not in known:
            known[entry] = file.tensor(entry)
        return known[entry]

    return structure.rebuild(text, tensor, name)


def _unknown(name: str, start: bytes) -> str:
    if start[:1] == b"\x80":
        return (
            f"{name}: a bare pickle, as old versions of PyTorch wrote, is not read\n  hint: load "
            "it with PyTorch and save it again, or as safetensors"
        )
    return f"{name}: neither safetensors, .npz nor .pt: it begins with {start!r}"
