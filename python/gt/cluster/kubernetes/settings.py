"""What the pods of a cluster in Kubernetes are given."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gt.cluster.programs import WorkerOptions

#: The port at which the server listens, in the network namespace of its own pod.
PORT = 9000

#: Names of objects add at most 22 characters to the cluster's, and a label has at most 63.
_LONGEST_NAME = 40

#: The seconds that a pod has to end after its workers' time to hand over what they have.
_MARGIN = 10

_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)(m|[kMGTPE]|[KMGTPE]i|)")

#: The suffixes of quantities; those of bytes end with `i`.
_FACTORS = {
    "m": 1e-3,
    "": 1.0,
    **{letter: 1e3 ** (power + 1) for power, letter in enumerate("kMGTPE")},
    **{f"{letter}i": 1024.0 ** (power + 1) for power, letter in enumerate("KMGTPE")},
}


@dataclass(frozen=True)
class PodSettings:
    """What the objects of a cluster in Kubernetes contain; checked when it is made."""

    name: str
    namespace: str
    image: str
    gpus: int | None = None
    gpu_resource: str = "nvidia.com/gpu"
    cpu: str = "1"
    memory: str = "2Gi"
    server_cpu: str = "500m"
    server_memory: str = "1Gi"
    shared_memory: str = "1Gi"
    drain: float = 25.0
    queue: str | None = None
    job_set: bool = False
    service_account: str | None = None
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, Any]] = ()
    image_pull_secrets: Sequence[str] = ()
    priority_class: str | None = None
    storage: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    server_options: Sequence[str] = ()
    worker_options: WorkerOptions = field(default_factory=WorkerOptions)
    lease: float | None = 60.0

    def __post_init__(self) -> None:
        """Check the names and quantities.

        Raises:
            ValueError: one is not as Kubernetes wants it.
        """
        for what, text in (("name", self.name), ("namespace", self.namespace)):
            if not re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", text):
                raise ValueError(
                    f"the {what} is '{text}', expected lowercase letters, digits and '-' that "
                    "begin with a letter"
                )
        if len(self.name) > _LONGEST_NAME:
            raise ValueError(
                f"the name '{self.name}' has {len(self.name)} characters, "
                f"expected at most {_LONGEST_NAME}"
            )
        if not self.image or not self.image.strip():
            raise ValueError("the image is empty: give the one that the pods run")
        if self.gpus is not None and (isinstance(self.gpus, bool) or self.gpus < 1):
            raise ValueError(f"gpus_per_pod is {self.gpus}, expected 1 or more, or None")
        if not 0 <= self.drain <= 86_400:
            raise ValueError(f"drain_timeout is {self.drain:g}, expected 0 to 86400 seconds")
        if self.lease is not None and not 2 <= self.lease <= 86_400:
            raise ValueError(f"lease is {self.lease:g}, expected 2 to 86400 seconds")
        for what in ("cpu", "memory", "server_cpu", "server_memory", "shared_memory"):
            quantity(getattr(self, what), what)

    @property
    def workers_per_pod(self) -> int:
        """Return how many workers a pod has: one for each GPU."""
        return self.gpus or 1

    @property
    def grace(self) -> int:
        """Return the seconds that a worker's pod has to end: it drains, and then ends."""
        return int(self.drain) + _MARGIN

    @property
    def server(self) -> str:
        """Return the name of the server's object, which owns all others."""
        return f"{self.name}-server"

    @property
    def workers(self) -> str:
        """Return the name of the workers' object."""
        return f"{self.name}-workers"

    @property
    def secret(self) -> str:
        """Return the name of the Secret with the keys."""
        return f"{self.name}-key"

    @property
    def host(self) -> str:
        """Return the name of the server's Service, as pods of all namespaces resolve it."""
        return f"{self.name}.{self.namespace}.svc"

    @property
    def selector(self) -> str:
        """Return the label selector of all that belongs to the cluster."""
        return f"app.kubernetes.io/instance={self.name},app.kubernetes.io/managed-by=gt"

    def matching(self, component: str | None = None) -> dict[str, str]:
        """Return the labels by which its pods are found: all, or those of a component."""
        found = {"app.kubernetes.io/name": "gt", "app.kubernetes.io/instance": self.name}
        return found | ({"app.kubernetes.io/component": component} if component else {})


def quantity(text: str, what: str = "quantity") -> float:
    """Return the number that a quantity of Kubernetes, such as `500m` or `2Gi`, means.

    Raises:
        ValueError: the text is none.
    """
    match = _QUANTITY.fullmatch(str(text))
    if match is None:
        raise ValueError(f"{what} is '{text}', expected a quantity as 2, 500m, 16Gi or 100M")
    return float(match[1]) * _FACTORS[match[2]]
