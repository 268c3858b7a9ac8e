"""Signal configurations: what the names of signals mean.

They come from a YAML file (`gt.load_config`, or `GT_CONFIG` at import) or from Python
(`gt.register_config`), and both may be mixed.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

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
        workers = self.workers
        if workers is not None and (
            not isinstance(workers, (list, tuple, range))
            or not all(isinstance(worker, int) and worker >= 0 for worker in workers)
        ):
            raise TypeError(f"workers is {workers!r}, expected worker numbers, or None for all")
        if workers is not None and not workers:
            raise ValueError("workers is an empty list, expected worker numbers, or None for all")
        if workers is not None and len(set(workers)) < len(workers):
            raise ValueError(f"workers is {list(workers)}, which names a worker twice")
        self.workers = None if workers is None else list(workers)
        self._placement()

    def _placement(self) -> _Placement:
        """Say the same as the core does: workers, and for each mesh axis its tensor axis."""
        if self.mesh is None:
            if not isinstance(self.axis, int):
                raise TypeError(f"axis is {self.axis!r}, expected a whole number without a mesh")
            return self.workers, [("", 0, None if self.replicated else self.axis)]
        axes = self.axis if isinstance(self.axis, Mapping) else {}
        for name in axes:
            if name not in self.mesh:
                raise ValueError(f"axis names '{name}', but the mesh has {list(self.mesh)}")
        return self.workers, [(name, n, axes.get(name)) for name, n in self.mesh.items()]

    @classmethod
    def _from_placement(cls, placement: _Placement) -> "ShardConfig":
        workers, mesh = placement
        if mesh[0][0] == "":
            axis = mesh[0][2]
            return cls(axis or 0, workers, replicated=axis is None)
        axes = {name: axis for name, _, axis in mesh if axis is not None}
        return cls(axes, workers, mesh={name: length for name, length, _ in mesh})


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


@dataclass
class Config:
    """All signal configurations of this process, by name."""

    signals: dict[str, SignalConfig] = field(default_factory=dict)

    def load(self, path: str | os.PathLike) -> None:
        """Add the signals of a YAML file; the same name again replaces the earlier one."""
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"a configuration is loaded from a path, not {type(path).__name__}")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for name, shard, backward, compiled in _gt.parse_config(text, os.fspath(path)):
            placed = ShardConfig._from_placement(shard) if shard else None
            self.register_signal(name, SignalConfig(placed, backward, compiled))

    def load_from_env(self) -> None:
        """Add the signals of the file that GT_CONFIG names, if it is set."""
        path = os.environ.get("GT_CONFIG")
        if path:
            self.load(path)

    def get_signal(self, name: str) -> SignalConfig | None:
        """Give a signal's configuration, or None."""
        return self.signals.get(name)

    def has_signal(self, name: str) -> bool:
        """Say whether a signal has a configuration."""
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
        """Forget all signals."""
        self.signals.clear()
        if self is _CONFIG:
            _gt.clear_signals()


_CONFIG = Config()


def get_config() -> Config:
    """Give the process's configuration."""
    return _CONFIG


def load_config(path: str | os.PathLike) -> Config:
    """Add the signals of a YAML file to the process's configuration."""
    _CONFIG.load(path)
    return _CONFIG


def register_config(name: str, config: SignalConfig) -> None:
    """Add or replace one signal's configuration."""
    _CONFIG.register_signal(name, config)


def get_signal_config(name: str) -> SignalConfig | None:
    """Give one signal's configuration, or None."""
    return _CONFIG.get_signal(name)
