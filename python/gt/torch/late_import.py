"""An error for programs that import gt.torch after their first backward pass.

PyTorch starts the threads of its backward passes at the first one: one for each device that it
knows then. It starts no others later, so a pass over a device that was registered since fails.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

#: The list of the threads' queues, which PyTorch's failed assertion names.
_QUEUES = "device_ready_queues_"


def register() -> None:
    """Explain the failed assertion of backward passes on the device."""
    run = torch.autograd.graph._engine_run_backward

    @functools.wraps(run)
    def explained(*args: Any, **options: Any) -> Any:
        try:
            return run(*args, **options)
        except RuntimeError as error:
            if _QUEUES not in str(error):
                raise
        raise RuntimeError(
            "gt.torch was imported after the first backward pass of this process, which started "
            "PyTorch's threads for the devices of that moment, without 'cluster'\n"
            "  hint: import gt.torch before it, at the top of the program"
        )

    torch.autograd.graph._engine_run_backward = explained
    # `torch.autograd` has a name of its own for it.
    torch.autograd._engine_run_backward = explained
