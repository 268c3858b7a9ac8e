"""The position of a `DataLoader`, which its `state_dict` contains."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Position:
    """The progress of a pass over a dataset, and the seeds of its order."""

    #: The number of passes before this one.
    epoch: int = 0
    #: The number of batches yielded.
    batches: int = 0
    #: The seed of the workers' random numbers; None before the pass begins.
    base_seed: int | None = None
    #: The seed of the sampler's order, if it follows from a seed.
    order_seed: int | None = None
    #: The number of batches that each worker yielded.
    given: list[int] = field(default_factory=list)
    #: The state of each worker's dataset after its last batch, if it is a stream that has one.
    states: list[Any] = field(default_factory=list)
    #: The number of the worker that is next.
    turn: int = 0

    def following(self) -> Position:
        """Return the beginning of the next pass: this one, if it has not begun."""
        return Position(self.epoch if self.base_seed is None else self.epoch + 1)

    def finish(self) -> None:
        """Move to the beginning of the next pass."""
        self.__dict__.update(asdict(self.following()))

    def state(self) -> dict[str, Any]:
        """Return the position as plain data."""
        return {**vars(self), "given": list(self.given), "states": list(self.states)}

    @staticmethod
    def of(state: dict[str, Any]) -> Position:
        """Return the position of a state that `state` returned.

        Raises:
            ValueError: the state has missing or unknown entries.
        """
        names = set(Position.__dataclass_fields__)
        if set(state) != names:
            raise ValueError(
                f"load_state_dict: the state has {sorted(state)}, expected the entries of "
                f"DataLoader.state_dict: {sorted(names)}"
            )
        return Position(**{**state, "given": list(state["given"]), "states": list(state["states"])})
