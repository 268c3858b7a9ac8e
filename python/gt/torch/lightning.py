"""Lightning on the device: after `import gt.torch.lightning`, `accelerator="cluster"` is GT.

>>> import gt.torch.lightning
>>> import lightning
>>> trainer = lightning.Trainer(accelerator="cluster", devices=1)
>>> trainer.strategy.root_device
device(type='cluster', index=0)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from gt.torch import cluster

try:
    from lightning.fabric import connector as fabric
    from lightning.fabric import strategies as fabric_strategies
    from lightning.fabric.accelerators import ACCELERATOR_REGISTRY
    from lightning.fabric.plugins import precision as fabric_precision
    from lightning.pytorch import plugins, strategies
    from lightning.pytorch.accelerators import Accelerator, AcceleratorRegistry
    from lightning.pytorch.trainer.connectors import accelerator_connector as trainer
except ImportError as error:
    raise ImportError(
        f"gt.torch.lightning needs Lightning, which cannot be imported: {error}\n"
        "  hint: pip install lightning"
    ) from error

__all__ = ["ClusterAccelerator"]


class ClusterAccelerator(Accelerator):
    """What Lightning asks of a device: there is one, with any number of workers behind it."""

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


def _register() -> None:
    """Teach Lightning the word "cluster", once in a process."""
    if "cluster" in AcceleratorRegistry:
        return
    for registry in (ACCELERATOR_REGISTRY, AcceleratorRegistry):
        registry.register("cluster", ClusterAccelerator, description="GT's workers")
    _teach(
        fabric._Connector, fabric_strategies.SingleDeviceStrategy, fabric_precision.MixedPrecision
    )
    _teach(trainer._AcceleratorConnector, strategies.SingleDeviceStrategy, plugins.MixedPrecision)


_register()
