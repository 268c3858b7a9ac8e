"""The interface for collectives between engines, such as by NCCL or Gloo.

Without it, workers read a tensor's values from the engine and send them over their own connections.
An engine that can exchange tensors directly returns `Collectives` from `Engine.collectives`;
workers then carry out a redistribution as one collective if all of its members are able to.
GT_COLLECTIVES chooses the backend, GT_COLLECTIVES_INTERFACE the network interface, and
GT_COLLECTIVES_TIMEOUT how long a member waits for the others.
"""

import math
import os
import sys
from dataclasses import dataclass

from gt.engines.engine import Engine, Meta, Tensor

#: Allowed values of GT_COLLECTIVES.
KINDS = ("auto", "off", "nccl", "gloo")
#: The default number of seconds that a member waits for the others of its group.
TIMEOUT = 120.0


@dataclass(frozen=True, slots=True)
class Settings:
    """The user's settings: a kind of `KINDS`; without an `interface`, only loopback is used."""

    kind: str = "auto"
    interface: str | None = None
    timeout: float = TIMEOUT

    @classmethod
    def from_environment(cls) -> "Settings":
        """Return the settings of the environment; raises `ValueError` for invalid values."""
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
    """The members of a collective, as seen by one of them.

    `members` (worker ids) and `names` are in the order of ranks; `rank` is that of this worker.
    Members rendezvous at `store`, which is `Collectives.store` of rank 0. After a failure all
    members recreate the group in the next `epoch`.
    """

    store: str
    members: tuple[int, ...]
    names: tuple[str, ...]
    rank: int
    epoch: int

    def others(self) -> str:
        """Return the quoted names of the other members."""
        names = (name for rank, name in enumerate(self.names) if rank != self.rank)
        return ", ".join(f"'{name}'" for name in names)


class Collectives:
    """An engine's collectives with the engines of other workers.

    `kind` names the library and its version; only engines of the same kind form groups. `local`
    is whether the endpoint is reachable from this machine only; `store` is the address of the
    rendezvous if this worker has rank 0. `device` names the device if the library allows it only
    once per group; otherwise it is empty.
    """

    kind = "collectives"
    local = True
    store = ""
    device = ""
    #: The dtypes that `all_reduce` and `reduce_scatter` can sum; for others the engine only
    #: exchanges blocks, and each worker adds them up.
    adds: frozenset[str] = frozenset()

    def join(
        self,
        group: Group,
        way: str,
        root: int | None,
        gives: list[tuple[int, Tensor]],
        gets: list[tuple[int, Meta]],
    ) -> list[Tensor]:
        """Carry out a collective, which all members call, and return the tensors received.

        `gives` lists tensors to send with the receiver's rank, `gets` metas of tensors to receive
        with the sender's rank. `way` is one of:

        - `all_reduce`: sends one tensor; receives the sum over all members.
        - `reduce_scatter`: sends a tensor of equal size to each rank; receives the sum of those
          sent to this one.
        - `all_gather`: sends one tensor to all others, of equal size; receives theirs.
        - `broadcast`: sends one tensor from `root` to all others.
        - `all_to_all`: sends any tensors to any ranks; those to the same rank keep their order.

        A tensor for several ranks is listed once, under this worker's own rank; so is a sum to
        receive. Raises `ConnectionError` if other members do not join in time, or fail.
        """
        raise NotImplementedError

    def leave(self, worker: int) -> None:
        """Close all groups that contain a lost worker."""


def agreed(engine: Engine | None, name: str) -> Collectives | None:
    """Return an engine's collectives if GT_COLLECTIVES allows them and the engine has them.

    `engine` is None for the native engine, which has none. Raises `ValueError` if the user requests
    collectives that the engine lacks. With `auto`, an engine's failure to set them up is reported
    to stderr and None is returned.
    """
    settings = Settings.from_environment()
    made = None
    if engine and settings.kind != "off":
        try:
            made = engine.collectives(settings)
        except Exception as error:
            if settings.kind != "auto" or isinstance(error, ValueError):
                raise
            print(
                f"gt worker: no collectives with other workers (GT_COLLECTIVES): {error}",
                file=sys.stderr,
            )
    if made is None and settings.kind not in ("auto", "off"):
        raise ValueError(
            f"GT_COLLECTIVES is '{settings.kind}', but the engine '{name}' has no collectives; "
            "expected auto or off, or the engine pytorch (--backend pytorch)"
        )
    return made
