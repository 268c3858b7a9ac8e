"""Checks of what an optimizer is given: parameters and options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, SupportsFloat

import gt
from gt._gt import Tensor


def check_params(name: str, params: Any) -> None:
    """Raise an error if the optimizer `name` is given something else than a list of parameters."""
    if isinstance(params, Tensor):
        raise TypeError(
            f"{name}: an optimizer takes a list of parameters or of dicts, not a tensor\n"
            f"  hint: {name}([tensor], ...)"
        )
    if isinstance(params, gt.nn.Module):
        kind = type(params).__name__
        raise TypeError(
            f"{name}: params is a module ({kind}), expected its parameters\n"
            f"  hint: {name}(model.parameters(), ...)"
        )
    if not isinstance(params, Iterable):
        raise TypeError(
            f"{name}: params is {params!r}, expected tensors, or dicts of options\n"
            f"  hint: {name}(model.parameters(), ...)"
        )


def check_rate(lr: Any) -> None:
    """Raise an error if `lr` is not a number or a one-element tensor."""
    if not isinstance(lr, SupportsFloat):
        raise TypeError(f"lr must be a number or a one-element tensor, not {lr!r}")
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")


def check_betas(betas: Any) -> None:
    """Raise an error if `betas` are not numbers from 0 to 1, without 1."""
    if not isinstance(betas, tuple | list):
        raise TypeError(f"betas is {betas!r}, expected a pair of numbers, such as (0.9, 0.999)")
    for beta in betas:
        if not 0 <= beta < 1:
            raise ValueError(f"betas are {betas}, each must be at least 0 and below 1")


def at_least_zero(group: Mapping[str, Any], *names: str) -> None:
    """Raise an error if any of these options is negative."""
    for name in names:
        value = group.get(name)
        values = value if isinstance(value, tuple) else (value,)
        for each in values:
            if each is not None and not isinstance(each, Tensor) and not each >= 0:
                raise ValueError(f"{name} is {value}, which must not be negative")
