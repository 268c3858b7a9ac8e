"""The objects of a cluster in Kubernetes."""

from __future__ import annotations

import math
from typing import Any

from gt.cluster.kubernetes.pods import Object, server_pod, worker_pod
from gt.cluster.kubernetes.settings import PORT, PodSettings

#: What a manifest has in place of the keys.
PLACEHOLDER = "THE-KEY-IS-NOT-SHOWN"

#: A Job of pods that are to be replaced however they end has no number of completions that it
#: reaches: a server whose node is drained ends in good order, too.
_NEVER = 1_000_000

#: The label of pods of programs that may connect to the server of the cluster of this name.
CLIENT_LABEL = "gt-client"


def objects(settings: PodSettings, size: int, keys: dict[str, str] | None = None) -> list[Object]:
    """Return the objects, in the order in which they are created; the first owns the others.

    Args:
        settings: what they contain.
        size: the number of workers' pods.
        keys: the texts of `cluster.key` and `worker.key`; a placeholder if it is None.
    """
    keys = keys or {"cluster.key": PLACEHOLDER, "worker.key": PLACEHOLDER}
    disruption = [_worker_budget(settings, size)]
    if settings.storage is None:
        # With a state, it resumes on another node: nothing has to hold up the drain of its node.
        budget = {"minAvailable": 1, "selector": {"matchLabels": settings.matching("server")}}
        disruption.append(_object("PodDisruptionBudget", settings, settings.server, budget))
    secret = _object("Secret", settings, settings.secret)
    return [
        _server(settings, size),
        {**secret, "type": "Opaque", "stringData": keys},
        _service(settings),
        *_policies(settings),
        *disruption,
        _job_set(settings, size) if settings.job_set else _deployment(settings, size),
    ]


_VERSIONS = {
    "Deployment": "apps/v1",
    "Job": "batch/v1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "NetworkPolicy": "networking.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1",
    "Secret": "v1",
    "Service": "v1",
}


def _object(kind: str, settings: PodSettings, name: str, spec: Object | None = None) -> Object:
    component = "server" if name == settings.server else "worker"
    shared = name in (settings.name, settings.secret)
    labels = {
        **settings.labels,
        **settings.matching(None if shared else component),
        "app.kubernetes.io/managed-by": "gt",
    }
    if settings.queue and kind in ("Deployment", "Job", "JobSet"):
        labels["kueue.x-k8s.io/queue-name"] = settings.queue
    meta = {"name": name, "namespace": settings.namespace, "labels": labels}
    return {
        **{"apiVersion": _VERSIONS[kind], "kind": kind, "metadata": meta},
        **({"spec": spec} if spec is not None else {}),
    }


def _server(settings: PodSettings, size: int) -> Object:
    template = server_pod(settings, size)
    if settings.lease is None:
        spec: Object = {
            "replicas": 1,
            # Two servers never use one state.
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": settings.matching("server")},
            "template": template,
        }
        return _object("Deployment", settings, settings.server, spec)
    template["spec"]["restartPolicy"] = "OnFailure"
    spec = {
        "parallelism": 1,
        "completions": _NEVER,
        "backoffLimit": _NEVER,
        "podReplacementPolicy": "Failed",
        # The owner extends it while it lives. After it, the Job ends and is removed, and with it
        # all that it owns.
        "activeDeadlineSeconds": math.ceil(settings.lease),
        "ttlSecondsAfterFinished": 0,
        "template": template,
    }
    return _object("Job", settings, settings.server, spec)


def _service(settings: PodSettings) -> Object:
    port = {"name": "gt", "port": PORT, "targetPort": "gt", "protocol": "TCP"}
    spec = {"selector": settings.matching("server"), "ports": [port]}
    return _object("Service", settings, settings.name, spec)


def _policies(settings: PodSettings) -> list[Object]:
    def policy(name: str, component: str, rule: dict[str, Any]) -> Object:
        spec = {
            "podSelector": {"matchLabels": settings.matching(component)},
            "policyTypes": ["Ingress"],
            "ingress": [rule],
        }
        return _object("NetworkPolicy", settings, name, spec)

    workers = {"podSelector": {"matchLabels": settings.matching("worker")}}
    clients = {"podSelector": {"matchLabels": {CLIENT_LABEL: settings.name}}}
    port = {"port": PORT, "protocol": "TCP"}
    return [
        policy(settings.server, "server", {"from": [workers, clients], "ports": [port]}),
        policy(settings.workers, "worker", {"from": [workers]}),
    ]


def _worker_budget(settings: PodSettings, size: int) -> Object:
    # Workers hand over what they have, one after the other. `maxUnavailable` does not work for
    # pods of Jobs.
    limit = least_available(size) if settings.job_set else {"maxUnavailable": 1}
    spec = {**limit, "selector": {"matchLabels": settings.matching("worker")}}
    return _object("PodDisruptionBudget", settings, settings.workers, spec)


def least_available(size: int) -> dict[str, int]:
    """Return the part of a disruption budget for the workers of a JobSet."""
    return {"minAvailable": max(size - 1, 0)}


def _deployment(settings: PodSettings, size: int) -> Object:
    spec = {
        "replicas": size,
        "selector": {"matchLabels": settings.matching("worker")},
        "template": worker_pod(settings),
    }
    return _object("Deployment", settings, settings.workers, spec)


def _job_set(settings: PodSettings, size: int) -> Object:
    template = worker_pod(settings)
    template["spec"]["restartPolicy"] = "OnFailure"
    job = {
        "parallelism": size,
        "completions": _NEVER,
        # A worker that was drained is replaced, and pods may be added and removed.
        "completionMode": "NonIndexed",
        "backoffLimit": _NEVER,
        "template": template,
    }
    spec = {
        # Workers find each other by the server.
        "network": {"enableDNSHostnames": False},
        "failurePolicy": {"maxRestarts": 3},
        "replicatedJobs": [{"name": "workers", "replicas": 1, "template": {"spec": job}}],
    }
    return _object("JobSet", settings, settings.workers, spec)
