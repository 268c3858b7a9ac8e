"""`gt.save` and `gt.load`."""

from __future__ import annotations

import os
from typing import Any

from gt import _gt
from gt._gt import Tensor
from gt.formats import npz, pytorch, structure
from gt.formats.stored import StoredFile, check_plain_file

#: The metadata key of a safetensors file with the structure that its tensors belong to.
_STRUCTURE = "gt.structure"


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: Any = None,
    _use_new_zipfile_serialization: Any = None,
) -> None:
    """Write tensors and containers of tensors to a file, which is replaced atomically.

    The file is in the safetensors format, so other programs can read its tensors; those of a state
    dict have the names of its parameters. A path that ends in `.npz` selects NumPy's format.
    Objects, such as modules and data classes, are saved as their attributes and the name of their
    class, which must be defined where `load` reads them; code is not saved.

    Args:
        obj: a tensor; or tensors, arrays, numbers, strings and bytes in dicts, lists, tuples, sets,
            modules, data classes, named tuples, enums, paths and other objects.
        f: a path, or a file open for writing bytes.
        pickle_module: accepted as in PyTorch and ignored: nothing is pickled.
        pickle_protocol: accepted as in PyTorch and ignored: nothing is pickled.

    Raises:
        TypeError: `obj` contains an unsupported value; the message says where.
        ValueError: a container contains itself, or is nested too deep.
        OSError: the file cannot be written; an existing file is kept.

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


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = True,
    mmap: Any = None,
    **pickle_load_args: Any,
) -> Any:
    """Read a file: GT's own, safetensors (also sharded, by its index), `.npz` or PyTorch's `.pt`.

    No code in a file is executed. From PyTorch's files, tensors, containers and plain values are
    read; other objects raise an error that names them.

    Args:
        f: a path, or a file open for reading bytes.
        map_location: accepted as in PyTorch and ignored: all tensors are on the cluster.
        pickle_module: accepted as in PyTorch and ignored: nothing is unpickled.
        weights_only: False to read objects of any class that GT's own file names, such as whole
            models: their modules are imported, and their `__setstate__` is called. Otherwise only
            those of `gt.nn` and of `gt.serialization.add_safe_globals` are read.
        mmap: accepted as in PyTorch and ignored: values of safetensors are read when used.
        **pickle_load_args: accepted as in PyTorch and ignored, such as `encoding`.

    Raises:
        OSError: the file does not exist, or is not a regular file but, for example, a pipe.
        ValueError: the format is unknown, the file is broken, or contains unsupported objects.
    """
    if unknown := sorted(pickle_load_args.keys() - {"encoding", "errors", "fix_imports"}):
        raise TypeError(f"load: there is no parameter '{unknown[0]}'")
    weights_only = True if weights_only is None else weights_only
    if hasattr(f, "read"):
        return _load_open(f, not weights_only)
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
    return _structured(stored, list(stored.entries), path, not weights_only)


def _load_open(file: Any, is_trusted: bool) -> Any:
    name = str(getattr(file, "name", "the given file"))
    start = file.read(9)
    rest = file.read()
    if start.startswith(b"PK"):
        import io

        return _load_zip(io.BytesIO(start + rest), name)
    if not _may_be_safetensors(start):
        raise ValueError(_unknown(name, start))
    given = _gt.SafetensorsFile.over(start + rest)
    return _structured(given, [entry for entry, _, _ in given.entries()], name, is_trusted)


def _may_be_safetensors(start: bytes) -> bool:
    """Return whether a JSON header may follow the eight bytes of its length."""
    return start[8:9] == b"{"


def _load_zip(file: Any, name: str) -> Any:
    if pytorch.is_file(file):
        return pytorch.load(file, name)
    return npz.load(file, name)


def _structured(file: Any, entries: list[str], name: str, is_trusted: bool) -> Any:
    text = file.metadata.get(_STRUCTURE)
    if text is None:
        return {entry: file.tensor(entry) for entry in entries}
    known: dict[str, Tensor] = {}

    def tensor(entry: str) -> Tensor:
        if entry not in known:
            known[entry] = file.tensor(entry)
        return known[entry]

    return structure.rebuild(text, tensor, name, is_trusted)


def _unknown(name: str, start: bytes) -> str:
    if start[:1] == b"\x80":
        return (
            f"{name}: a bare pickle, as written by old versions of PyTorch, is not supported\n"
            "  hint: load it with PyTorch and save it again, or as safetensors"
        )
    return f"{name}: neither safetensors, .npz nor .pt: it begins with {start!r}"
