"""Whether Ray has room for a cluster, and what to say if it has not."""

from __future__ import annotations

from typing import Any

from gt.cluster.ray.groups import Group
from gt.cluster.ray.plan import Plan, told


def asks_too_much(ray: Any, plan: Plan, size: int) -> bool:
    """Return whether all that Ray has is not enough for some workers."""
    total = ray.cluster_resources()
    return any(amount * size > total.get(name, 0) for name, amount in plan.worker.items())


def refusal(ray: Any, plan: Plan, size: int, group: Group | None, waited: float | None) -> str:
    """Return what was asked, what Ray has, and Ray's own word for it.

    Args:
        ray: Ray's package.
        plan: what is asked of it.
        size: for how many workers.
        group: their placement group.
        waited: the seconds that it has waited, if it has.
    """
    total, free = ray.cluster_resources(), ray.available_resources()
    nodes = sum(bool(node["Alive"]) for node in ray.nodes())
    state = group.state() if group is not None else {}
    word = state.get("stats", {}).get("scheduling_state", state.get("state", ""))
    when = "" if waited is None else f" after {waited:g} s"
    has = told({name: total.get(name, 0) for name in plan.worker})
    left = told({name: free.get(name, 0) for name in plan.worker})
    return (
        f"Ray has no room{when} for the cluster '{plan.cluster}': it asks for {plan.asked(size)}, "
        f"{plan.strategy}; Ray has {has} on {nodes} node{'s' if nodes != 1 else ''}, of which "
        f"{left} is free\n"
        f"  Ray says of the placement group: {word}\n"
        "  hint: cpus_per_worker and gpus_per_worker may be less than 1, and the latter 0"
    )
