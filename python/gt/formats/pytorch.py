"""A reader of `torch.save` files that does not need PyTorch and executes nothing in a file."""

from __future__ import annotations

import zipfile
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import gt
from gt import _gt
from gt._gt import Tensor
from gt.formats import plain
from gt.formats.pickled import Machine, NotAllowed
from gt.formats.stored import check_plain_file

#: PyTorch's storage classes, and their dtypes.
_STORAGES = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
    "UntypedStorage": "uint8",
}

#: The functions that create a parameter from a tensor in PyTorch's pickles.
_PARAMETERS = ("_rebuild_parameter", "_rebuild_parameter_with_state")


#: The names of PyTorch's tensor classes.
_TENSORS = ("torch Tensor", "torch.nn.parameter Buffer")

#: Dtypes of PyTorch that GT lacks.
_LACKING = """uint16 uint32 uint64 complex32 float8_e4m3fn float8_e5m2 float8_e4m3fnuz
    float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2 qint8 quint8 qint32 quint4x2 quint2x4""".split()

#: Description and hint for objects that are not supported, by their names in a pickle.
_REFUSED = {
    **{
        f"torch {dtype}": (
            f"the dtype torch.{dtype}, which GT does not have",
            "convert it with .to(torch.float32) or another dtype before saving it",
        )
        for dtype in _LACKING
    },
    "torch._utils _rebuild_sparse_tensor": (
        "a sparse tensor, which GT does not have",
        "save tensor.to_dense() instead",
    ),
    "torch._utils _rebuild_nested_tensor": (
        "a nested tensor, which GT does not have",
        "save the list of its parts, tensor.unbind(), instead",
    ),
    "torch._utils _rebuild_meta_tensor_no_storage": (
        "a tensor on the device 'meta', which has no values",
        "give the model values on another device before saving it",
    ),
    "torch._utils _rebuild_qtensor": (
        "a quantized tensor, which GT does not have",
        "save tensor.dequantize() instead",
    ),
}


class _Kind(NamedTuple):
    """A storage class."""

    dtype: str


class _Storage(NamedTuple):
    """The memory of one or more tensors in a file."""

    key: str
    dtype: str
    values: memoryview


class Place(NamedTuple):
    """The location and layout of a tensor's values in a file, so that they can be read later."""

    key: str
    dtype: str
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    conj: bool = False
    neg: bool = False


def is_file(path: Any) -> bool:
    """Return whether a file was written by `torch.save`."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith("/data.pkl") for name in archive.namelist())
    except (zipfile.BadZipFile, OSError):
        return False


def load(file: Any, name: str) -> Any:
    """Read a file of `torch.save`: tensors, containers of them, numbers and strings.

    Args:
        file: a path, or a file open for reading.
        name: the name of the file in messages.

    Raises:
        ValueError: the file contains other objects, or is not a file of `torch.save`.
    """
    with _opened(file, name) as archive:
        return _Reader(archive, name).read()


def places(path: str) -> dict[str, Place]:
    """Return the location of each tensor in a file with a state dict, without reading values.

    Raises:
        OSError: the file does not exist, or is not a regular file but, for example, a pipe.
        ValueError: as for `load`; or the file does not contain a dict of tensors by name.
    """
    check_plain_file(path)
    with _opened(path, path) as archive:
        state = _Surveyor(archive, path).read()
    if not isinstance(state, dict):
        raise ValueError(_no_state(path, state, ""))
    for name, place in state.items():
        if not isinstance(name, str) or not isinstance(place, Place):
            raise ValueError(_no_state(path, place, f" at {name!r}"))
    return dict(state)


def _no_state(path: str, value: Any, where: str) -> str:
    kind = "tensor" if isinstance(value, Place) else type(value).__name__
    return (
        f"{path}: it holds a {kind}{where}, expected a dict of tensors by name\n  hint: "
        "save model.state_dict() instead"
    )


def read_place(path: str, place: Place) -> Tensor:
    """Read one tensor of a file.

    Raises:
        ValueError: as for `load`.
    """
    with _opened(path, path) as archive:
        values = memoryview(_Reader(archive, path).storage_of(place.key))
    return _values(_Storage(place.key, place.dtype, values), place)


@contextmanager
def _opened(file: Any, name: str) -> Iterator[zipfile.ZipFile]:
    """Open an archive; errors in the block are raised with the file's name."""
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive
    except zipfile.BadZipFile as error:
        raise ValueError(f"{name}: not a file of torch.save, or truncated: {error}") from error
    except NotAllowed as error:
        raise ValueError(f"{name}: it contains {error}\n  hint: {error.hint}") from error


class _Reader:
    """A reader of one archive."""

    def __init__(self, archive: zipfile.ZipFile, name: str):
        self._archive, self._name = archive, name
        pickles = [n for n in archive.namelist() if n.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise ValueError(f"{name}: not a file of torch.save: it has {len(pickles)} data.pkl")
        self._folder = pickles[0].removesuffix("data.pkl")
        self._storages: dict[str, memoryview] = {}
        self._tensors: dict[Place, Tensor] = {}

    def read(self) -> Any:
        order = f"{self._folder}byteorder"
        if order in self._archive.namelist() and self._member(order) != b"little":
            raise ValueError(
                f"{self._name}: its values are big-endian\n  hint: load and save it again with "
                "PyTorch on a little-endian machine"
            )
        machine = Machine(
            self._allowed(),
            self._storage,
            _with_state,
            named=plain.classes() | dict.fromkeys(_TENSORS, Tensor),
            refused=_REFUSED,
        )
        try:
            return machine.run(self._member(f"{self._folder}data.pkl"))
        except NotAllowed:
            raise
        except ValueError as error:
            raise ValueError(f"{self._name}: {error}") from error

    def storage_of(self, key: str) -> bytes:
        """Read the bytes of a storage."""
        return self._member(f"{self._folder}data/{key}")

    def _member(self, name: str) -> bytes:
        info = self._archive.getinfo(name)
        if info.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"{self._name}: '{name}' is compressed, unlike files of torch.save")
        return self._archive.read(info)

    def _allowed(self) -> dict[str, Any]:
        names: dict[str, Any] = {f"torch {n}": _Kind(d) for n, d in _STORAGES.items()}
        names["torch.storage UntypedStorage"] = _Kind("uint8")
        for dtype in dict.fromkeys(_STORAGES.values()):
            names[f"torch {dtype}"] = getattr(gt, dtype)
        return names | plain.names() | self._makers()

    def _makers(self) -> dict[str, Any]:
        """Return the functions that create tensors, by module and name."""
        return {
            "torch._utils _rebuild_tensor_v2": self._tensor,
            "torch._utils _rebuild_tensor_v3": self._tensor_of_bytes,
            "torch._tensor _rebuild_from_type_v2": self._with_attributes,
            **{f"torch._utils {name}": _parameter for name in _PARAMETERS},
        }

    def _storage(self, persistent_id: Any) -> _Storage:
        kind, key, count = _reference(persistent_id)
        if key not in self._storages:
            self._storages[key] = memoryview(self.storage_of(key))
        values = self._storages[key]
        if len(values) != count * _gt.parse_dtype(kind.dtype).itemsize:
            raise ValueError(
                f"storage {key} has {len(values)} bytes, expected {count} {kind.dtype}"
            )
        return _Storage(key, kind.dtype, values)

    def _tensor(
        self,
        storage: _Storage,
        offset: int,
        size: tuple[int, ...],
        stride: tuple[int, ...],
        requires_grad: bool = False,
        hooks: Any = None,
        metadata: Any = None,
    ) -> Tensor:
        """Create a tensor over a storage, as `torch._utils._rebuild_tensor_v2` does."""
        place = _place(storage, offset, size, stride, metadata)
        if place not in self._tensors:
            self._tensors[place] = _values(storage, place)
        return self._tensors[place].detach().requires_grad_(bool(requires_grad))

    def _tensor_of_bytes(
        self,
        storage: _Storage,
        offset: Any,
        size: Any,
        stride: Any,
        requires_grad: Any,
        hooks: Any,
        dtype: Any,
        metadata: Any = None,
    ) -> Any:
        """Create a tensor over an untyped storage, as `torch._utils._rebuild_tensor_v3` does."""
        if not isinstance(dtype, _gt.dtype):
            raise ValueError(f"a {type(dtype).__name__} as a dtype")
        typed = storage._replace(dtype=dtype.name)
        return self._tensor(typed, offset, size, stride, requires_grad, hooks, metadata)

    def _with_attributes(self, function: Any, kind: Any, arguments: Any, state: Any) -> Any:
        """Create a tensor that was saved with Python attributes, which are ignored."""
        if kind is not Tensor:
            raise ValueError("a tensor of an unknown class")
        if function == self._tensor:
            return self._tensor(*plain.sequence(arguments))
        if function == self._tensor_of_bytes:
            return self._tensor_of_bytes(*plain.sequence(arguments))
        raise ValueError("a tensor that is created by an unknown function")


class _Surveyor(_Reader):
    """A reader that returns the locations of tensors instead of tensors."""

    def _makers(self) -> dict[str, Any]:
        kept = {f"torch._utils {name}": _unchanged for name in _PARAMETERS}
        return super()._makers() | kept

    def _storage(self, persistent_id: Any) -> Any:
        kind, key, _ = _reference(persistent_id)
        return _Storage(key, kind.dtype, memoryview(b""))

    def _tensor(
        self,
        storage: _Storage,
        offset: int,
        size: Any,
        stride: Any,
        requires_grad: bool = False,
        hooks: Any = None,
        metadata: Any = None,
    ) -> Any:
        return _place(storage, offset, size, stride, metadata)


def _reference(persistent_id: Any) -> tuple[_Kind, str, int]:
    """Return the class, the key and the length of the storage that a pickle refers to."""
    what, kind, key, _, count = plain.sequence(persistent_id)
    if plain.text(what) != "storage" or not isinstance(kind, _Kind):
        raise ValueError(f"a reference to {what[:20]!r}, expected one to a storage")
    return kind, plain.text(key), plain.integer(count)


def _place(storage: Any, offset: Any, size: Any, stride: Any, metadata: Any) -> Place:
    """Return the location of a tensor; its metadata has the conjugate and negative bits."""
    bits = plain.items(metadata or ())
    if others := [name for name in bits if name not in ("conj", "neg")]:
        raise NotAllowed(
            f"a tensor with the property {str(others[0])[:60]!r}", "save it without that property"
        )
    return Place(
        storage.key,
        storage.dtype,
        plain.integer(offset),
        plain.integers(size),
        plain.integers(stride),
        bool(bits.get("conj")),
        bool(bits.get("neg")),
    )


def _values(storage: _Storage, place: Place) -> Tensor:
    """Return the tensor at a place in a storage."""
    tensor = _strided(storage, place.offset, place.size, place.stride)
    if place.conj:
        tensor = tensor.conj()
    return -tensor if place.neg else tensor


def _strided(
    storage: _Storage, offset: int, size: tuple[Any, ...], stride: tuple[Any, ...]
) -> Tensor:
    import numpy as np

    dtype = _gt.parse_dtype(storage.dtype)
    count, item = len(storage.values) // dtype.itemsize, dtype.itemsize
    if len(size) != len(stride) or any(n < 0 for n in (*size, *stride, offset)):
        raise ValueError(f"invalid size {size}, stride {stride} or offset {offset} of a tensor")
    # Axes of stride 0 are read once and expanded.
    read = tuple(1 if step == 0 else length for length, step in zip(size, stride, strict=True))
    if 0 in size:
        return _gt.zeros(size, dtype=dtype)
    end = offset + sum((n - 1) * step for n, step in zip(read, stride, strict=True)) + 1
    if end > count:
        raise ValueError(f"a tensor extends to element {end} of a storage of {count}")
    raw = np.frombuffer(storage.values, np.uint8).reshape(count, item)
    steps = (*(step * item for step in stride), 1)
    parts = np.lib.stride_tricks.as_strided(raw[offset:], (*read, item), steps, writeable=False)
    tensor = _gt.from_bytes(np.ascontiguousarray(parts).reshape(-1), dtype, read)
    return tensor if read == size else tensor.expand(size)


def _parameter(data: Tensor, requires_grad: bool, hooks: Any = None, state: Any = None) -> Tensor:
    if not isinstance(data, Tensor):
        raise ValueError(f"a parameter of a {type(data).__name__}, expected a tensor")
    return gt.nn.Parameter(data, bool(requires_grad))


def _unchanged(data: Place, *_: Any) -> Place:
    return data


def _with_state(value: Any, state: Any) -> Any:
    """Set the `_metadata` that modules leave on their state dicts."""
    if isinstance(value, OrderedDict) and isinstance(state, dict):
        metadata = state.get("_metadata")
        if metadata is not None:
            value._metadata = metadata  # type: ignore[attr-defined]
        return value
    raise NotAllowed(f"attributes of a {type(value).__name__}")
