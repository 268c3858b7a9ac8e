"""Lightning on the device: after `import gt.torch.lightning`, `accelerator="cluster"` is GT.

It is known by both of Lightning's names, `lightning` and `pytorch_lightning`.

>>> import gt.torch.lightning
>>> import lightning
>>> trainer = lightning.Trainer(accelerator="cluster", devices=1)
>>> trainer.strategy.root_device
device(type='cluster', index=0)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch

from gt.torch import cluster

#: Lightning's packages by the names that they have, for fabrics and for trainers.
_PACKAGES = (
    ("lightning.fabric", "lightning.pytorch"),
    ("lightning_fabric", "pytorch_lightning"),
)


class ClusterAccelerator:
    """What Lightning asks of a device: there is one, with any number of workers behind it.

    Each of the packages has a subclass that is an accelerator of its own.
    """

    @staticmethod
    def name() -> str:
        """The word for `Trainer(accelerator=...)`."""
        return "cluster"

    @staticmethod
    def is_available() -> bool:
        """Whether there is such a device: always."""
        return True

    @staticmethod
    def auto_device_count() -> int:
        """How many devices `devices="auto"` means."""
        return 1

    @staticmethod
    def parse_devices(devices: Any) -> int:
        """Give the number of devices that `devices` asks for.

        Raises:
            ValueError: it asks for more than one.
        """
        if devices not in (1, "1", "auto", -1, "-1", [0], "0,"):
            raise ValueError(
                f"Trainer(accelerator='cluster', devices={devices!r}): there is one such device\n"
                "  hint: devices=1; gt.signal.context cuts its work over the workers"
            )
        return 1

    @staticmethod
    def get_parallel_devices(devices: int) -> list[torch.device]:
        """Give the devices by their number."""
        return [torch.device("cluster", index) for index in range(devices)]

    def setup_device(self, device: torch.device) -> None:
        """Check that this is where the work goes.

        Raises:
            ValueError: the strategy keeps the model elsewhere.
        """
        if device.type != "cluster":
            raise ValueError(
                f"accelerator='cluster' with a strategy for the device {device}\n"
                "  hint: leave out `strategy`, or give SingleDeviceStrategy(device='cluster')"
            )

    def get_device_stats(self, device: Any) -> dict[str, Any]:
        """Give what is known of the device's memory, in bytes."""
        return {
            "memory_allocated": cluster.memory_allocated(),
            "max_memory_allocated": cluster.max_memory_allocated(),
        }

    def teardown(self) -> None:
        """Leave the device: its tensors live as long as the program holds them."""


def _is_cluster(connector: Any) -> bool:
    """Whether a trainer was given this accelerator."""
    flag = connector._accelerator_flag
    return flag == "cluster" or isinstance(flag, ClusterAccelerator)


def _teach(connector: Any, strategy: Callable[..., Any], mixed: type) -> None:
    """Have what chooses by Lightning's own devices alone know this one."""
    choose, precise = connector._choose_strategy, connector._check_and_init_precision

    @functools.wraps(choose)
    def chosen(self: Any) -> Any:
        return strategy(device="cluster:0") if _is_cluster(self) else choose(self)

    @functools.wraps(precise)
    def precision(self: Any) -> Any:
        found = precise(self)
        if _is_cluster(self) and isinstance(found, mixed):
            # Lightning has made it for CUDA, where it would change nothing here.
            return mixed(found.precision, "cluster")
        return found

    connector._choose_strategy = chosen
    connector._check_and_init_precision = precision


def _teach_package(fabric: str, trainer: str) -> None:
    """Teach Lightning under one of its names the word "cluster".

    Raises:
        ImportError: it is not installed under this name.
    """
    accelerators = import_module(f"{trainer}.accelerators")
    kind = type("ClusterAccelerator", (ClusterAccelerator, accelerators.Accelerator), {})
    registries = (
        import_module(f"{fabric}.accelerators").ACCELERATOR_REGISTRY,
        accelerators.AcceleratorRegistry,
    )
    for registry in registries:
        if "cluster" not in registry:
            registry.register("cluster", kind, description="GT's workers")
    _teach(
        import_module(f"{fabric}.connector")._Connector,
        import_module(f"{fabric}.strategies").SingleDeviceStrategy,
        import_module(f"{fabric}.plugins.precision").MixedPrecision,
    )
    connectors = import_module(f"{trainer}.trainer.connectors.accelerator_connector")
    _teach(
        connectors._AcceleratorConnector,
        import_module(f"{trainer}.strategies").SingleDeviceStrategy,
        import_module(f"{trainer}.plugins").MixedPrecision,
    )


def _register() -> None:
    """Teach all packages that are installed."""
    missing = []
    for names in _PACKAGES:
        try:
            _teach_package(*names)
        except ImportError as error:
            missing.append(error)
    if len(missing) == len(_PACKAGES):
        raise ImportError(
            f"gt.torch.lightning needs Lightning, which cannot be imported: {missing[0]}\n"
            "  hint: pip install lightning"
        ) from missing[0]


_register()
