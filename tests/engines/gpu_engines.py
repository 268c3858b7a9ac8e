"""Engines that claim to compute on a GPU, for tests."""

import os

import numpy as np
from gt.engines.numpy import NumPyEngine


class OnGPU(NumPyEngine):
    """Claims the GPU, or MIG instance, that GT_TEST_GPU names."""

    name = "on_gpu"
    gpu_uuid = os.environ.get("GT_TEST_GPU")


class Failing(NumPyEngine):
    """Its device fails in tanh, and then in all calls of this process.

    It does while the file that GT_TEST_FAULTS names has a line, which it removes. Each start of an
    engine appends a line to the file that GT_TEST_STARTS names.
    """

    name = "failing"

    def __init__(self, device: int = 0):
        super().__init__(device)
        self._has_failed = False
        with open(os.environ["GT_TEST_STARTS"], "a") as starts:
            starts.write(f"{os.getpid()}\n")

    def lowering(self, signature):
        """Return a function that fails as CUDA does."""
        function = super().lowering(signature)

        def compute(*operands, **attributes):
            if signature.operation == "tanh":
                self._meet_fault()
            self._check()
            return function(*operands, **attributes)

        return compute

    def read(self, tensor: np.ndarray):
        """Return the values, unless the device has failed."""
        self._check()
        return super().read(tensor)

    def is_device_lost(self, error: BaseException) -> bool:
        """Return whether it has failed."""
        return self._has_failed

    def _meet_fault(self) -> None:
        path = os.environ["GT_TEST_FAULTS"]
        with open(path) as file:
            faults = file.read().splitlines()
        if faults:
            with open(path, "w") as file:
                file.writelines(f"{line}\n" for line in faults[1:])
            self._has_failed = True

    def _check(self) -> None:
        if self._has_failed:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
