"""Compute in an exit handler that is registered before the device is imported."""

import atexit


def late():
    try:
        x.sinh()
    except Exception as error:
        print(type(error).__name__)


atexit.register(late)

import gt.torch  # noqa: E402, F401
import torch  # noqa: E402

x = torch.ones(2, device="cluster")
for _ in range(3):
    y = x * 2
