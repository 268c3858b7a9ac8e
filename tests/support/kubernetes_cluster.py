"""Fixtures of tests that run clusters in a stand-in for Kubernetes."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from kubernetes_api import KubernetesApiServer
from kubernetes_node import Node


def wait_until(is_true: Callable[[], bool], what: str, limit: float = 60) -> None:
    """Wait for something, with a limit that a loaded machine does not reach."""
    until = time.monotonic() + limit
    while not is_true():
        assert time.monotonic() < until, f"{what} did not happen within {limit:g} s"
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    """Return whether a process runs, and is no zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"


class StandIn:
    """An API server with a node, and the kubeconfig that leads to it."""

    def __init__(self, folder: Path, **node):
        self.api = KubernetesApiServer(more=("jobsets",))
        self.config = folder / "config"
        self.api.write_config(self.config)
        self.node = Node(self.api, folder / "node", **node)
        self._before = os.environ.get("KUBECONFIG")
        os.environ["KUBECONFIG"] = str(self.config)

    def has_nothing(self) -> bool:
        """Return whether no object and no process of a pod is left."""
        return self.api.count() == 0 and self.node.running() == []

    def close(self) -> None:
        if self._before is None:
            del os.environ["KUBECONFIG"]
        else:
            os.environ["KUBECONFIG"] = self._before
        try:
            self.node.close()
        finally:
            self.api.close()
