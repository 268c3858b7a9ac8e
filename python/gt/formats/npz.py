"""NumPy's `.npz` format, archives of named arrays."""

from __future__ import annotations

import os
import zipfile
from typing import Any

import gt
from gt import _gt
from gt._gt import Tensor


def save(tensors: Any, path: str) -> None:
    """Write a dict of tensors to a file, which is replaced atomically.

    Raises:
        TypeError: `tensors` is not a dict of tensors or arrays with string keys, or a dtype is not
            supported by NumPy.
        ValueError: an archive cannot hold a name.
    """
    if not isinstance(tensors, dict):
        raise TypeError(
            f"save: an .npz file holds a dict of tensors by name, not a {type(tensors).__name__}"
        )
    arrays = [(_name(key), _array(key, value)) for key, value in tensors.items()]
    part = f"{path}.{os.getpid()}.part"
    try:
        with open(part, "wb") as file:
            _write(file, arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
        _sync_folder(os.path.dirname(os.path.abspath(path)))
    finally:
        if os.path.exists(part):
            os.remove(part)


def load(file: Any, name: str) -> dict[str, Tensor]:
    """Read the tensors of a file, given by its path or open for reading.

    Raises:
        ValueError: the file is not an `.npz` archive, is broken, or contains Python objects.
    """
    import numpy as np

    if hasattr(file, "seek"):
        file.seek(0)
    try:
        with zipfile.ZipFile(file) as archive:
            parts = archive.infolist()
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise _not_one(name, error) from error
    _check_unpacked(name, parts)
    if hasattr(file, "seek"):
        file.seek(0)
    try:
        with np.load(file, allow_pickle=False) as arrays:
            members = arrays.zip.namelist()
            return {key.removesuffix(".npy"): _gt.tensor(arrays[key]) for key in members}
    except (ValueError, EOFError, zipfile.BadZipFile, AttributeError) as error:
        raise _not_one(name, error) from error


def _not_one(name: str, error: Exception) -> ValueError:
    return ValueError(f"{name}: an archive that is neither .npz nor .pt: {error}")


def _check_unpacked(name: str, members: list[zipfile.ZipInfo]) -> None:
    """Raise a ValueError if the arrays would need far more memory than the file, before unpacking.

    This protects against decompression bombs.
    """
    packed, unpacked = (
        sum(getattr(member, size) for member in members) for size in ("compress_size", "file_size")
    )
    given = os.environ.get("GT_UNPACK_LIMIT")
    limit = _gt.parse_size(given) if given else max(1 << 30, 100 * packed)
    if unpacked > limit:
        raise ValueError(
            f"{name}: its arrays take {unpacked / 1e6:.1f} MB unpacked, {packed / 1e6:.1f} MB in "
            f"the file; the limit is {limit / 1e6:.1f} MB\n  hint: if you trust the file, "
            "raise the limit with GT_UNPACK_LIMIT=16GB"
        )


def _sync_folder(folder: str) -> None:
    """Flush a folder's entries to the disk, so that a new file survives a loss of power."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _write(file: Any, arrays: list[tuple[str, Any]]) -> None:
    import numpy as np

    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _name(key: Any) -> str:
    """Return a dict's key as the name of an array, or raise if an archive cannot hold it."""
    if not isinstance(key, str):
        raise TypeError(
            f"save: an .npz file holds tensors by name, the key {key!r} is a {type(key).__name__}"
        )
    if "\0" in key or key.encode("utf-8", "replace").decode() != key:
        raise ValueError(f"save: an .npz file cannot hold the name {key!r}")
    return key


def _array(key: str, value: Any) -> Any:
    import numpy as np

    if isinstance(value, Tensor):
        if value.dtype == gt.bfloat16:
            raise TypeError(
                f"save: tensor '{key}' has dtype bfloat16, which .npz lacks\n  hint: convert it "
                "with .float(), or save to a path that does not end in .npz"
            )
        return value.detach().numpy()
    try:
        array = np.asarray(value)
    except ValueError:
        array = None
    if array is None or array.dtype.kind not in "biufc":
        raise TypeError(
            f"save: '{key}' is a {type(value).__name__}, expected a tensor or an array of numbers"
            "\n  hint: save to a path that does not end in .npz to keep other structures"
        )
    return array
