"""Where a `DataLoader` is: what its `state_dict` stores."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Position:
    """How far a pass over a dataset is, and what its order follows from."""

    #: How many passes were before.
    epoch: int = 0
    #: How many batches were given.
    batches: int = 0
    #: The seed of the workers' random numbers; None before the pass begins.
    base_seed: int | None = None
    #: The seed of the sampler's order, if it has one.
    order_seed: int | None = None
    #: Of a stream: how many batches each worker gave, and what its dataset said afterwards;
    given: list[int] = field(default_factory=list)
    states: list[Any] = field(default_factory=list)
    #: and which worker is next.
    turn: int = 0

    def following(self) -> Position:
        """Give the beginning of the pass after this one."""
        return Position(self.epoch if self.base_seed is None else self.epoch + 1)

    def finish(self) -> None:
        """Go to the beginning of the next pass."""
        self.__dict__.update(asdict(self.following()))

    def state(self) -> dict[str, Any]:
        """Give the position as plain data."""
        return {**vars(self), "given": list(self.given), "states": list(self.states)}

    @staticmethod
    def of(state: dict[str, Any]) -> Position:
        """Give the position that `state` has told.

        Raises:
            ValueError: something is missing, or too much.
        """
        names = set(Position.__dataclass_fields__)
        if set(state) != names:
            raise ValueError(
                f"load_state_dict: the state has {sorted(state)}, expected what "
                f"DataLoader.state_dict gives: {sorted(names)}"
            )
        return Position(**{**state, "given": list(state["given"]), "states": list(state["states"])})
