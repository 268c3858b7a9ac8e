"""Signal configurations: the meaning of signals by name.

They are defined in a YAML file (`gt.load_config`, or `GT_CONFIG` at import) or in Python
(`gt.register_config`), or in both.
"""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from gt import _gt
from gt._public import show_callers

__all__ = [
    "Config",
    "ShardConfig",
    "SignalConfig",
    "get_config",
    "get_signal_config",
    "load_config",
    "register_config",
]


#: Workers (None for all), then the name, length and tensor axis of each axis of the mesh.
_Placement = tuple[list[int] | None, list[tuple[str, int, int | None]]]


@dataclass
class ShardConfig:
    """The placement of a tensor: sharded along `axis` over `workers`, or replicated on them.

    `workers` are worker numbers; None means all. With a mesh, such as `{"data": 2, "model": 4}`,
    the workers form a grid, and `axis` maps the names of mesh axes to the tensor axes that are
    sharded over them: `{"data": 0, "model": 1}`. Over a name that is missing, tensors are
    replicated.
    """

    axis: int | Mapping[str, int | None] = 0
    workers: list[int] | None = None
    replicated: bool = False
    mesh: Mapping[str, int] | None = None

    def __post_init__(self) -> None:
        self._placement()

    def _placement(self) -> _Placement:
        """Return the core's form: workers, and the tensor axis of each mesh axis."""
        if not isinstance(self.replicated, bool):
            raise TypeError(f"replicated is {self.replicated!r}, expected True or False")
        workers = None if self.workers is None else _worker_numbers(self.workers)
        if self.mesh is None:
            if not _is_int(self.axis):
                raise TypeError(f"axis is {self.axis!r}, expected a whole number without a mesh")
            return workers, [("", 0, None if self.replicated else self.axis)]
        mesh = _mesh_lengths(self.mesh)
        count = math.prod(mesh.values())
        if workers is not None and len(workers) != count:
            raise ValueError(
                f"the mesh {mesh} has {count} positions, but workers has {len(workers)} numbers"
            )
        if self.replicated:
            return workers, [(name, length, None) for name, length in mesh.items()]
        axes = _mesh_axes(self.axis, mesh)
        return workers, [(name, length, axes.get(name)) for name, length in mesh.items()]

    @classmethod
    def _from_placement(cls, placement: _Placement) -> "ShardConfig":
        workers, mesh = placement
        if mesh[0][0] == "":
            axis = mesh[0][2]
            return cls(axis or 0, workers, replicated=axis is None)
        axes = {name: axis for name, _, axis in mesh if axis is not None}
        return cls(axes, workers, mesh={name: length for name, length, _ in mesh})


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _worker_numbers(workers: Sequence[int]) -> list[int]:
    """Return a list of worker numbers after checking it."""
    if not isinstance(workers, (list, tuple, range)) or not all(
        _is_int(worker) and 0 <= worker < 2**32 for worker in workers
    ):
        raise TypeError(f"workers is {workers!r}, expected worker numbers, or None for all")
    if not workers:
        raise ValueError("workers is an empty list, expected worker numbers, or None for all")
    if len(set(workers)) < len(workers):
        raise ValueError(f"workers is {list(workers)}, which names a worker twice")
    return list(workers)


def _mesh_lengths(mesh: Mapping[str, int]) -> dict[str, int]:
    """Return the names and lengths of a mesh after checking them."""
    fits = (
        isinstance(mesh, Mapping)
        and 1 <= len(mesh) <= 2
        and all(isinstance(name, str) and name for name in mesh)
        and all(_is_int(length) and 1 <= length < 2**32 for length in mesh.values())
    )
    if not fits:
        raise ValueError(
            f"mesh is {mesh!r}, expected one or two names with their numbers of workers, "
            'such as {"data": 2, "model": 4}'
        )
    return dict(mesh)


def _mesh_axes(axes: object, mesh: dict[str, int]) -> dict[str, int | None]:
    """Return the tensor axis of each mesh axis after checking them."""
    if not isinstance(axes, Mapping):
        raise TypeError(
            f"axis is {axes!r}, expected a tensor axis for names of the mesh {list(mesh)}\n"
            '  hint: axis={"data": 0}, or replicated=True for replicas'
        )
    for name, axis in axes.items():
        if name not in mesh:
            raise ValueError(f"axis names '{name}', but the mesh has {list(mesh)}")
        if axis is not None and not _is_int(axis):
            raise TypeError(f"axis of '{name}' is {axis!r}, expected a whole number or None")
    cut = [axis for axis in axes.values() if axis is not None]
    if len(set(cut)) < len(cut):
        raise ValueError(f"axis is {dict(axes)}, which shards axis {cut[0]} twice")
    return dict(axes)


@dataclass
class SignalConfig:
    """The meaning of a signal: placement, the signal of its gradients, and whether to compile."""

    shard: ShardConfig | None = None
    backward_signal: str | None = None
    compile: bool = False

    def __post_init__(self) -> None:
        if self.shard is not None and not isinstance(self.shard, ShardConfig):
            raise TypeError(f"shard is {self.shard!r}, expected a ShardConfig or None")
        if self.backward_signal is not None and not isinstance(self.backward_signal, str):
            raise TypeError(f"backward_signal is {self.backward_signal!r}, expected a name or None")
        if not isinstance(self.compile, bool):
            raise TypeError(f"compile is {self.compile!r}, expected True or False")


@dataclass
class Config:
    """All signal configurations of this process by name, and the number of slots of sessions."""

    signals: dict[str, SignalConfig] = field(default_factory=dict)
    #: The number of slots that tensors are sharded over; None for the number of workers.
    slots: int | None = None
    #: Whether workers that join later add slots.
    elastic: bool | None = None

    def load(self, path: str | os.PathLike[str]) -> None:
        """Add the signals of a YAML file; a name that exists already is replaced."""
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"the path of a configuration is text, not {type(path).__name__}")
        text = _read(path)
        signals, slots, elastic = _gt.parse_config(text, os.fspath(path))
        self.slots = self.slots if slots is None else slots
        self.elastic = self.elastic if elastic is None else elastic
        if self is _CONFIG:
            _gt.set_slots(self.slots, self.elastic)
        for name, shard, backward, compiled in signals:
            placed = ShardConfig._from_placement(shard) if shard else None
            self.register_signal(name, SignalConfig(placed, backward, compiled))

    def load_from_env(self) -> None:
        """Add the signals of the file that GT_CONFIG names, if it is set."""
        path = os.environ.get("GT_CONFIG")
        if not path:
            return
        try:
            self.load(path)
        except (OSError, ValueError) as error:
            problem = (
                f" is {path!r}: {error.strerror}" if isinstance(error, OSError) else f": {error}"
            )
            raise type(error)(
                f"GT_CONFIG{problem}\n  hint: name a YAML file of signals, or unset GT_CONFIG"
            ) from None

    def get_signal(self, name: str) -> SignalConfig | None:
        """Return a signal's configuration, or None."""
        return self.signals.get(name)

    def has_signal(self, name: str) -> bool:
        """Return whether a signal has a configuration."""
        return name in self.signals

    def register_signal(self, name: str, config: SignalConfig) -> None:
        """Add or replace a signal's configuration."""
        if not isinstance(name, str):
            raise TypeError(f"a signal's name is text, not {type(name).__name__}")
        if not isinstance(config, SignalConfig):
            raise TypeError(f"config must be a SignalConfig, not {type(config).__name__}")
        if self is _CONFIG:
            shard = config.shard._placement() if config.shard else None
            _gt.register_signal(name, shard, config.backward_signal, config.compile)
        self.signals[name] = config

    def clear(self) -> None:
        """Remove all signals and the number of slots."""
        self.signals.clear()
        self.slots = self.elastic = None
        if self is _CONFIG:
            _gt.clear_signals()
            for name in _COMPILED:
                _register_compiled(name)


def _read(path: str | os.PathLike[str]) -> str:
    """Return the text of a file.

    Raises:
        ValueError: it is no text.
    """
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError:
        raise ValueError(
            f"{os.fspath(path)}: not text in UTF-8, expected a YAML file of signals"
        ) from None


_CONFIG = Config()

#: The signals of `gt.compile`, which `Config.clear` keeps.
_COMPILED: set[str] = set()


def register_compiled(name: str) -> None:
    """Compile the scopes of a name; used by `gt.compile`."""
    _COMPILED.add(name)
    _register_compiled(name)


def _register_compiled(name: str) -> None:
    _gt.register_signal(name, None, None, True)


def get_config() -> Config:
    """Return the process's configuration."""
    return _CONFIG


def load_config(
    path: str | os.PathLike[str] | None = None, *, config_file: str | os.PathLike[str] | None = None
) -> Config:
    """Add the signals of a YAML file to the process's configuration.

    Args:
        path: the file.
        config_file: another name for `path`, from early versions.
    """
    if (path is None) == (config_file is None):
        raise TypeError("load_config: give path or config_file, which are the same, not both")
    _CONFIG.load(path if path is not None else config_file)  # type: ignore[arg-type]
    return _CONFIG


def register_config(name: str, config: SignalConfig) -> None:
    """Add or replace one signal's configuration."""
    _CONFIG.register_signal(name, config)


def get_signal_config(name: str) -> SignalConfig | None:
    """Return one signal's configuration, or None."""
    return _CONFIG.get_signal(name)


show_callers(globals())
