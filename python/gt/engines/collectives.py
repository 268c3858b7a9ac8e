"""How engines move tensors among workers themselves, as by NCCL or Gloo.

Otherwise an engine is asked for a tensor's values, and the workers send them. An engine that can
do better gives `Collectives` from `Engine.collectives`; its workers then join in groups, wherever
all who take part in a movement can. GT_COLLECTIVES says whether, GT_COLLECTIVES_INTERFACE over
which network, GT_COLLECTIVES_TIMEOUT for how long one waits for the others.
"""

import math
import os
import sys
from dataclasses import dataclass

from gt.engines.engine import Engine, Meta, Tensor

#: What GT_COLLECTIVES may say.
KINDS = ("auto", "off", "nccl", "gloo")
#: Seconds that a member waits for the others of its group, by default.
TIMEOUT = 120.0


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user asks for: see `KINDS`; without an `interface`, workers of one machine alone."""

    kind: str = "auto"
    interface: str | None = None
    timeout: float = TIMEOUT

    @classmethod
    def from_environment(cls) -> "Settings":
        """Read the variables; raises `ValueError` for what they cannot mean."""
        kind = os.environ.get("GT_COLLECTIVES") or "auto"
        if kind not in KINDS:
            raise ValueError(f"GT_COLLECTIVES is '{kind}', expected one of {', '.join(KINDS)}")
        given = os.environ.get("GT_COLLECTIVES_TIMEOUT") or str(TIMEOUT)
        try:
            timeout = float(given)
        except ValueError:
            timeout = math.nan
        if not 0 < timeout < math.inf:
            raise ValueError(f"GT_COLLECTIVES_TIMEOUT is '{given}', expected seconds, such as 120")
        return cls(kind, os.environ.get("GT_COLLECTIVES_INTERFACE") or None, timeout)


@dataclass(frozen=True, slots=True)
class Group:
    """Workers that join each other, as one of them sees it.

    The members' numbers and names stand in the order of their ranks; `rank` is this worker's.
    They find each other at `store`, the first one's `Collectives.store`. A group that has failed
    is made anew by all of its members, in the next `epoch`.
    """

    store: str
    members: tuple[int, ...]
    names: tuple[str, ...]
    rank: int
    epoch: int

    def others(self) -> str:
        """Name the other members."""
        names = (name for rank, name in enumerate(self.names) if rank != self.rank)
        return ", ".join(f"'{name}'" for name in names)


class Collectives:
    """What an engine does together with those of other workers.

    `kind` names what it goes by, and its version: engines join those that say the same. `local`
    says whether only this machine reaches it, and `store` where members find each other if this
    worker is the first of them. If a group must not have a `device` twice, that is its name.
    """

    kind = "collectives"
    local = True
    store = ""
    device = ""
    #: The dtypes that `all_reduce` and `reduce_scatter` add up; others are only moved.
    adds: frozenset[str] = frozenset()

    def join(
        self,
        group: Group,
        way: str,
        root: int | None,
        gives: list[tuple[int, Tensor]],
        gets: list[tuple[int, Meta]],
    ) -> list[Tensor]:
        """Take part in a movement, which all members do, and give what this worker gets.

        `gives` has tensors with the ranks that they are for, `gets` those that come:

        - `all_reduce`: one tensor, the members' sum.
        - `reduce_scatter`: a tensor for each rank, all of one size; the sum of those for this one.
        - `all_gather`: one tensor for all others, all of one size; theirs.
        - `broadcast`: one tensor from `root` for all others.
        - `all_to_all`: any tensors for any ranks; several for one rank come in the same order.

        One tensor for several ranks stands once, with this worker's own; so does a sum that it
        gets. Raises `ConnectionError` if the others do not come, or leave.
        """
        raise NotImplementedError

    def leave(self, worker: int) -> None:
        """Close the groups with a worker, which is gone."""


def agreed(engine: Engine | None, name: str) -> Collectives | None:
    """Give the collectives of an engine, if the user and it want some; GT's own has none.

    Raises `ValueError` if the user asks for what it has not. What nobody has asked for may fail.
    """
    settings = Settings.from_environment()
    made = None
    if engine and settings.kind != "off":
        try:
            made = engine.collectives(settings)
        except Exception as error:
            if settings.kind != "auto" or isinstance(error, ValueError):
                raise
            print(f"gt worker: it joins no others (GT_COLLECTIVES): {error}", file=sys.stderr)
    if made is None and settings.kind not in ("auto", "off"):
        raise ValueError(
            f"GT_COLLECTIVES is '{settings.kind}', but the engine '{name}' has no collectives; "
            "expected auto or off, or the engine pytorch (--backend pytorch)"
        )
    return made
