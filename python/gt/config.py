"""Signal configurations: what the names of signals mean.

They come from a YAML file (`gt.load_config`, or `GT_CONFIG` at import) or from Python
(`gt.register_config`), and both may be mixed.
"""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from gt import _gt

__all__ = [
    "Config",
    "ShardConfig",
    "SignalConfig",
    "get_config",
    "get_signal_config",
    "load_config",
    "register_config",
]


#: Workers (None for all), then for each axis of the mesh its name, length and tensor axis.
_Placement = tuple[list[int] | None, list[tuple[str, int, int | None]]]


@dataclass
class ShardConfig:
    """Where a tensor goes: cut along `axis` over `workers`, or a copy on each of them.

    `workers` are worker numbers; None means all. With a mesh, such as `{"data": 2, "model": 4}`,
    the workers stand in rows and columns, and `axis` says for each name which axis of a tensor is
    cut over it: `{"data": 0, "model": 1}`. Over a name that is left out there are copies.
    """

    axis: int | Mapping[str, int | None] = 0
    workers: list[int] | None = None
    replicated: bool = False
    mesh: Mapping[str, int] | None = None

    def __post_init__(self) -> None:
        self._placement()

    def _placement(self) -> _Placement:
        """Say the same as the core does: workers, and for each mesh axis its tensor axis."""
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
                f"the mesh {mesh} has {count} places, but workers names {len(workers)}"
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
    """Check a list of workers."""
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
    """Check the names and lengths of a mesh."""
    fits = (
        isinstance(mesh, Mapping)
        and 1 <= len(mesh) <= 2
        and all(isinstance(name, str) and name for name in mesh)
        and all(_is_int(length) and 1 <= length < 2**32 for length in mesh.values())
    )
    if not fits:
        raise ValueError(
            f"mesh is {mesh!r}, expected one or two names with how many workers each has, "
            'such as {"data": 2, "model": 4}'
        )
    return dict(mesh)


def _mesh_axes(axes: object, mesh: dict[str, int]) -> dict[str, int | None]:
    """Check which tensor axis is cut over which name of a mesh."""
    if not isinstance(axes, Mapping):
        raise TypeError(
            f"axis is {axes!r}, expected a tensor's axis for names of the mesh {list(mesh)}\n"
            '  hint: axis={"data": 0}, or replicated=True for copies'
        )
    for name, axis in axes.items():
        if name not in mesh:
            raise ValueError(f"axis names '{name}', but the mesh has {list(mesh)}")
        if axis is not None and not _is_int(axis):
            raise TypeError(f"axis of '{name}' is {axis!r}, expected a whole number or None")
    cut = [axis for axis in axes.values() if axis is not None]
    if len(set(cut)) < len(cut):
        raise ValueError(f"axis is {dict(axes)}, which cuts axis {cut[0]} twice")
    return dict(axes)


@dataclass
class SignalConfig:
    """What a signal means: placement, the signal of its gradients, and whether to compile."""

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
    """All signal configurations of this process, by name, and how many slots sessions have."""

    signals: dict[str, SignalConfig] = field(default_factory=dict)
    #: How many parts tensors are cut into; None for as many as there are workers.
    slots: int | None = None
    #: Whether workers that join later add slots.
    elastic: bool | None = None

    def load(self, path: str | os.PathLike) -> None:
        """Add the signals of a YAML file; the same name again replaces the earlier one."""
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"a configuration is loaded from a path, not {type(path).__name__}")
        with open(path, encoding="utf-8") as file:
            text = file.read()
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
        if path:
            self.load(path)

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
            raise TypeError(f"a SignalConfig is needed, not {type(config).__name__}")
        if self is _CONFIG:
            shard = config.shard._placement() if config.shard else None
            _gt.register_signal(name, shard, config.backward_signal, config.compile)
        self.signals[name] = config

    def clear(self) -> None:
        """Forget all signals, and how many slots sessions have."""
        self.signals.clear()
        self.slots = self.elastic = None
        if self is _CONFIG:
            _gt.clear_signals()
            for name in _COMPILED:
                _register_compiled(name)


_CONFIG = Config()

#: The signals of `gt.compile`, which stay when others are forgotten.
_COMPILED: set[str] = set()


def register_compiled(name: str) -> None:
    """Have the scopes of a name compiled; used by `gt.compile`."""
    _COMPILED.add(name)
    _register_compiled(name)


def _register_compiled(name: str) -> None:
    _gt.register_signal(name, None, None, True)


def get_config() -> Config:
    """Return the process's configuration."""
    return _CONFIG


def load_config(
    path: str | os.PathLike | None = None, *, config_file: str | os.PathLike | None = None
) -> Config:
    """Add the signals of a YAML file to the process's configuration.

    Args:
        path: the file.
        config_file: another name for `path`, as early versions had it.
    """
    if (path is None) == (config_file is None):
        raise TypeError("load_config: give path or config_file, which are the same, and not both")
    _CONFIG.load(path if path is not None else config_file)  # type: ignore[arg-type]
    return _CONFIG


def register_config(name: str, config: SignalConfig) -> None:
    """Add or replace one signal's configuration."""
    _CONFIG.register_signal(name, config)


def get_signal_config(name: str) -> SignalConfig | None:
    """Return one signal's configuration, or None."""
    return _CONFIG.get_signal(name)
