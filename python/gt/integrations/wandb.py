"""Values of `wandb.log` and of a run's configuration may be GT's tensors, as PyTorch's."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import gt
from gt.integrations.functions import Function, replace


def extend(wandb: ModuleType) -> None:
    """Let the function by which wandb reads values take tensors.

    Args:
        wandb: the package.
    """
    replace(wandb, "json_friendly", _reading_tensors)


def _reading_tensors(json_friendly: Function) -> Function:
    """Return a function that returns a value for JSON, and whether it differs from the given."""

    @functools.wraps(json_friendly)
    def read(value: Any, **options: Any) -> tuple[Any, bool]:
        if not isinstance(value, gt.Tensor):
            return json_friendly(value, **options)
        if value.ndim == 0:
            return value.item(), True
        return json_friendly(value.detach().numpy(), **options)

    return read
