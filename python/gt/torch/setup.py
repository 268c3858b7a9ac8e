"""The registration of the device "cluster" with PyTorch."""

from __future__ import annotations

import inspect
import os

import torch

from gt import _gt
from gt._gt import torch_device
from gt.torch import (
    accelerator,
    autocast,
    cluster,
    data_parallel,
    dtypes,
    flex,
    hooks,
    host,
    inductor,
    registry,
    sharing,
    steps,
    storages,
)
from gt.torch.kernels import detection, memory


def run() -> None:
    """Register the device, its module and its kernels; once per process."""
    # Errors name the user's line, not a line in PyTorch's Python code.
    _gt.add_package_folder(os.path.dirname(torch.__file__) + os.sep)
    _name_functions()
    torch_device.setup(torch.Tensor)
    torch_device.Kernel.connect(
        tensor=torch.Tensor,
        parameter=torch.nn.Parameter,
        dtype=torch.dtype,
        dtypes=dtypes.BY_TORCH,
        resize=memory.resize_out,
        from_host=memory.from_host_beside,
    )
    torch.utils.rename_privateuse1_backend("cluster")
    cluster.register()
    hooks.register()
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    storages.register()
    steps.register()
    sharing.register()
    host.register()
    accelerator.register()
    data_parallel.register()
    autocast.register()
    registry.register_all()
    detection.register()
    inductor.register()
    flex.register()


def _name_functions() -> None:
    """Register names of PyTorch's functions, for errors about operations that they issue."""
    functional = torch.nn.functional
    for name, function in vars(functional).items():
        own = inspect.unwrap(function) if inspect.isfunction(function) else None
        if own is not None and own.__module__ == functional.__name__ and own.__name__ == name:
            names = own.__code__.co_varnames[: own.__code__.co_argcount]
            _gt.add_call(own.__code__, name, "target" if "target" in names else "index")
