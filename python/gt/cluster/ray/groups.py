"""The placement groups of a cluster: which worker is in which bundle."""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gt.cluster.ray.plan import Plan

#: How long Ray may take to remove placement groups, in seconds.
_REMOVED_WITHIN = 2.0

#: The label by which Ray names a node.
_NODE = "ray.io/node-id"


@dataclass
class Group:
    """A placement group, with a bundle for each of some workers.

    Args:
        ray: Ray's package.
        handle: Ray's placement group.
        numbers: the worker of each bundle.
        is_first: whether the server is in its first bundle, too.
    """

    ray: Any
    handle: Any
    numbers: Sequence[int]
    is_first: bool
    _is_ready: bool = False
    in_use: set[int] = field(default_factory=set)

    def state(self) -> dict[str, Any]:
        """Return what Ray says of it."""
        found: dict[str, Any] = self.ray.util.placement_group_table(self.handle)
        return found

    def is_ready(self) -> bool:
        """Return whether Ray has reserved what was asked, now or before."""
        self._is_ready = self._is_ready or self.state().get("state") == "CREATED"
        return self._is_ready

    def placed(self) -> dict[int, str]:
        """Return the nodes of the bundles that have one."""
        places = self.state().get("bundles_to_node_id", {})
        return {bundle: node for bundle, node in places.items() if node}

    def nodes(self) -> list[str]:
        """Return the nodes that have a bundle."""
        return list(self.placed().values())

    def place(self, bundle: int) -> dict[str, Any]:
        """Return the options that place an actor in a bundle."""
        strategies: Any = importlib.import_module("ray.util.scheduling_strategies")
        strategy = strategies.PlacementGroupSchedulingStrategy(
            placement_group=self.handle,
            placement_group_bundle_index=bundle,
            placement_group_capture_child_tasks=False,
        )
        return {"scheduling_strategy": strategy}


class Groups:
    """The placement groups of a cluster.

    The first one has the workers that the cluster starts with, and the server, which costs Ray
    nothing there. It stays as long as the cluster. Workers that are added have further ones, which
    are removed when they have left.
    """

    def __init__(self, ray: Any, plan: Plan):
        """Begin without a group."""
        self._ray, self._plan = ray, plan
        self._groups: list[Group] = []

    @property
    def first(self) -> Group | None:
        """Return the group that the cluster starts with, unless it has started without workers."""
        return next((group for group in self._groups if group.is_first), None)

    def waiting(self) -> list[Group]:
        """Return the groups that Ray has not placed yet."""
        return [group for group in self._groups if not group.is_ready()]

    def add_first(self, size: int) -> None:
        """Ask for the group of the server and the first workers."""
        if size:
            self._add(range(size), "first", None)

    def add(self, numbers: Sequence[int]) -> None:
        """Ask for what further workers need, and the first group does not have."""
        first = self.first.numbers if self.first else ()
        known = {number for group in self._groups for number in group.numbers}
        more = [number for number in numbers if number not in first and number not in known]
        if not more:
            return
        strategy = self._plan.strategy
        nodes = sorted({node for group in self._groups for node in group.nodes()})
        if strategy == "STRICT_SPREAD":
            self._add(more, _name(more), f"!in({','.join(nodes)})" if nodes else None)
        elif strategy == "STRICT_PACK":
            self._add(more, _name(more), f"in({nodes[0]})" if nodes else None)
        else:
            for number in more:
                self._add([number], _name([number]), None)

    def server_place(self) -> dict[str, Any]:
        """Return the options that place the server."""
        return self.first.place(0) if self.first else {}

    def of_worker(self, number: int) -> Group | None:
        """Return the group of a worker."""
        return next((group for group in self._groups if number in group.numbers), None)

    def use(self, number: int) -> tuple[dict[str, Any], Group]:
        """Return the options that place a worker, and its group, which is then in use."""
        group = self.of_worker(number)
        assert group is not None
        group.in_use.add(number)
        return group.place(list(group.numbers).index(number)), group

    def release(self, group: Group | None, number: int) -> None:
        """Return to Ray what a worker had, as far as that can be."""
        if group is None:
            return
        group.in_use.discard(number)
        if not group.is_first and not group.in_use and group in self._groups:
            self._groups.remove(group)
            self._ray.util.remove_placement_group(group.handle)

    def find(self) -> None:
        """Find the groups that another process has asked for."""
        for found in self._ray.util.placement_group_table().values():
            prefix, _, part = found["name"].rpartition(":")
            if prefix == self._plan.cluster and found["state"] != "REMOVED":
                handle = self._ray.util.get_placement_group(found["name"])
                first = part == "first"
                count = len(found["bundles"])
                numbers = range(count) if first else [int(of) for of in part.split("-")]
                self._groups.append(Group(self._ray, handle, numbers, first))

    def remove_all(self) -> None:
        """Return all to Ray; return when it has it, or after some seconds."""
        groups, self._groups = self._groups, []
        for group in groups:
            self._ray.util.remove_placement_group(group.handle)
        until = time.monotonic() + _REMOVED_WITHIN
        while any(of.state().get("state") not in ("REMOVED", None) for of in groups):
            if time.monotonic() > until:
                return
            time.sleep(0.05)

    def _add(self, numbers: Sequence[int], name: str, nodes: str | None) -> None:
        bundles = [dict(self._plan.worker) for _ in numbers]
        options = self._plan.group(name)
        if nodes is not None:
            options["bundle_label_selector"] = [{_NODE: nodes} for _ in numbers]
        handle = self._ray.util.placement_group(bundles, strategy=self._plan.strategy, **options)
        self._groups.append(Group(self._ray, handle, numbers, name == "first"))


def _name(numbers: Sequence[int]) -> str:
    return "-".join(map(str, numbers))
