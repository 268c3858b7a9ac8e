"""Lightning on GT: `import gt.torch.lightning` registers `accelerator="cluster"`.

Both of Lightning's packages are supported, `lightning` and `pytorch_lightning`.

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

#: The names of Lightning's packages, (for fabrics, for trainers).
_PACKAGES = (
    ("lightning.fabric", "lightning.pytorch"),
    ("lightning_fabric", "pytorch_lightning"),
)


class ClusterAccelerator:
    """Lightning's accelerator interface for the single device "cluster".

    For each of the packages there is a subclass that derives from its `Accelerator`.
    """

    @staticmethod
    def name() -> str:
        """Return the name for `Trainer(accelerator=...)`."""
        return "cluster"

    @staticmethod
    def is_available() -> bool:
        """Return whether the device is available, which is always the case."""
        return True

    @staticmethod
    def auto_device_count() -> int:
        """Return the number of devices for `devices="auto"`."""
        return 1

    @staticmethod
    def parse_devices(devices: Any) -> int:
        """Return the number of devices that `devices` requests.

        Raises:
            ValueError: It requests more than one.
        """
        if devices not in (1, "1", "auto", -1, "-1", [0], "0,"):
            raise ValueError(
                f"Trainer(accelerator='cluster', devices={devices!r}): there is one such device\n"
                "  hint: devices=1; gt.signal.context shards its work over the workers"
            )
        return 1

    @staticmethod
    def get_parallel_devices(devices: int) -> list[torch.device]:
        """Return the devices for a number of devices."""
        return [torch.device("cluster", index) for index in range(devices)]

    def setup_device(self, device: torch.device) -> None:
        """Check that the strategy's device is the cluster.

        Raises:
            ValueError: The strategy keeps the model on another device.
        """
        if device.type != "cluster":
            raise ValueError(
                f"accelerator='cluster' with a strategy for the device {device}\n"
                "  hint: omit `strategy`, or pass SingleDeviceStrategy(device='cluster')"
            )

    def get_device_stats(self, device: Any) -> dict[str, Any]:
        """Return statistics of the device's memory, in bytes."""
        return {
            "memory_allocated": cluster.memory_allocated(),
            "max_memory_allocated": cluster.max_memory_allocated(),
        }

    def teardown(self) -> None:
        """Do nothing: tensors live as long as the program refers to them."""


def _is_cluster(connector: Any) -> bool:
    """Return whether a trainer uses this accelerator."""
    flag = connector._accelerator_flag
    return flag == "cluster" or isinstance(flag, ClusterAccelerator)


def _teach(connector: Any, strategy: Callable[..., Any], mixed: type[Any]) -> None:
    """Patch a connector, whose choices only consider Lightning's own devices."""
    choose, precise = connector._choose_strategy, connector._check_and_init_precision

    @functools.wraps(choose)
    def chosen(self: Any) -> Any:
        return strategy(device="cluster:0") if _is_cluster(self) else choose(self)

    @functools.wraps(precise)
    def precision(self: Any) -> Any:
        found = precise(self)
        if _is_cluster(self) and isinstance(found, mixed):
            # Lightning creates it for CUDA, which would have no effect on this device.
            return mixed(found.precision, "cluster")
        return found

    connector._choose_strategy = chosen
    connector._check_and_init_precision = precision


def _teach_package(fabric: str, trainer: str) -> None:
    """Register the accelerator with one of Lightning's packages.

    Raises:
        ImportError: The package is not installed.
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
    """Register the accelerator with all installed packages."""
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
