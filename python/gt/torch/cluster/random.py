"""`torch.cluster.random`: the session's random numbers, which all workers share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

import gt
from gt.torch.cluster import refused
from gt.torch.cluster.devices import check_device

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]

__getattr__ = refused.of("torch.cluster.random")


def manual_seed(seed: int) -> None:
    """Set the seed of the session's random numbers."""
    gt.manual_seed(int(seed) & (2**63 - 1))


manual_seed_all = manual_seed


def seed() -> int:
    """Set the seed of the session's random numbers to a random number, and return it."""
    return gt.seed()


seed_all = seed


def initial_seed() -> int:
    """Return the seed of the session's random numbers."""
    return gt.initial_seed()


def get_rng_state(device: Any = None) -> torch.Tensor:
    """Return the state of the session's random numbers."""
    check_device(device)
    return torch.from_numpy(gt.get_rng_state().numpy().copy())


def get_rng_state_all() -> list[torch.Tensor]:
    """Return a list of one state, that of the session's random numbers."""
    return [get_rng_state()]


def set_rng_state(new_state: torch.Tensor, device: Any = None) -> None:
    """Set the state of the session's random numbers."""
    check_device(device)
    gt.set_rng_state(gt.from_numpy(new_state.cpu().numpy()))


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Set the state of the session's random numbers from a list of one state.

    Raises:
        RuntimeError: The list has another length.
    """
    states = list(new_states)
    if len(states) != 1:
        raise RuntimeError(
            f"set_rng_state_all: got {len(states)} states, but there is one device, cluster:0\n"
            "  hint: torch.cluster.get_rng_state_all() returns the list that it takes"
        )
    set_rng_state(states[0])
