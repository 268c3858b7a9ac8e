"""Signal configurations: what the names of signals mean.

They come from a YAML file (`gt.load_config`, or `GT_CONFIG` at import) or from Python
(`gt.register_config`), and both may be mixed.
"""

import os
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


@dataclass
class ShardConfig:
    """Where a tensor goes: cut along `axis` over `workers`, or a copy on each of them.

    `workers` are worker numbers; None means all.
    """

    axis: int = 0
    workers: list[int] | None = None
    replicated: bool = False


@dataclass
class SignalConfig:
    """What a signal means: placement, the signal of its gradients, and whether to compile."""

    shard: ShardConfig | None = None
    backward_signal: str | None = None
    compile: bool = False


@dataclass
class Config:
    """All signal configurations of this process, by name."""

    signals: dict[str, SignalConfig] = field(default_factory=dict)

    def load(self, path: str | os.PathLike) -> None:
        """Add the signals of a YAML file; the same name again replaces the earlier one."""
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for name, shard, backward, compiled in _gt.parse_config(text, os.fspath(path)):
            self.signals[name] = SignalConfig(shard and ShardConfig(*shard), backward, compiled)

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
        if not isinstance(config, SignalConfig):
            raise TypeError(f"a SignalConfig is needed, not {type(config).__name__}")
        self.signals[name] = config

    def clear(self) -> None:
        """Forget all signals."""
        self.signals.clear()


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
