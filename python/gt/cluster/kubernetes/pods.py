"""The pods of servers and workers, and what runs in them."""

from __future__ import annotations

from typing import Any

from gt.cluster.kubernetes.settings import PORT, PodSettings, quantity

Object = dict[str, Any]

#: The user of the image; files on volumes keep their owner.
USER = 10001

#: Where the keys are mounted.
KEYS = "/run/secrets/gt"

#: Where the server's claim is mounted.
STATE = "/var/lib/gt/state"

#: How long a worker waits for the server, whose image may still have to be pulled, in seconds.
_SERVER_WAIT = 600

#: How long a container may need before it listens, in seconds.
_STARTUP = 120


def server_pod(settings: PodSettings, size: int) -> Object:
    """Return the template of the server's pod."""
    command = [
        *("gt", "server", "--host=0.0.0.0", f"--port={PORT}"),
        f"--key-file={KEYS}/cluster.key",
        f"--workers={size * settings.workers_per_pod}",
    ]
    volumes, mounts = _volumes(settings, "cluster.key")
    if settings.storage:
        # The folder inside is the server's own: a volume's root belongs to a group.
        command.append(f"--state={STATE}/{settings.name}")
        claim = {"claimName": settings.storage}
        volumes.append({"name": "state", "persistentVolumeClaim": claim})
        mounts.append({"name": "state", "mountPath": STATE})
    listens = {"tcpSocket": {"port": "gt"}}
    container = {
        "name": "server",
        "image": settings.image,
        "command": [*command, *settings.server_options],
        "env": _environment(),
        "ports": [{"name": "gt", "containerPort": PORT, "protocol": "TCP"}],
        "startupProbe": {**listens, "periodSeconds": 1, "failureThreshold": _STARTUP},
        "readinessProbe": {**listens, "periodSeconds": 5, "timeoutSeconds": 3},
        "livenessProbe": {
            **listens,
            "periodSeconds": 10,
            "timeoutSeconds": 5,
            "failureThreshold": 6,
        },
        "resources": _resources(settings.server_cpu, settings.server_memory),
        "securityContext": _container_security(),
        "volumeMounts": mounts,
    }
    return _template(settings, "server", container, volumes, grace=10)


def worker_pod(settings: PodSettings) -> Object:
    """Return the template of a worker's pod.

    It has no probes, as a worker has no port that answers: one that fails ends, and its container
    is started again. The server notices a worker that does not answer.
    """
    options = settings.worker_options.arguments()
    given = {option.split("=")[0] for option in options}
    share = int(quantity(settings.cpu) / settings.workers_per_pod)
    if "--threads" not in given:
        options.append(f"--threads={max(1, share)}")
    if "--drain-timeout" not in given:
        options.append(f"--drain-timeout={settings.drain:g}")
    common = [
        f"--address={settings.name}:{PORT}",
        f"--key-file={KEYS}/worker.key",
        f"--wait={_SERVER_WAIT}",
    ]
    if settings.workers_per_pod == 1:
        command = ["gt", "worker", *common, "--id=$(POD_NAME)", *options]
    else:
        # One container with all GPUs of the pod: processes of several containers cannot use the
        # direct links between their GPUs.
        command = [
            *("python", "-m", "gt.cluster.node", *common, "--name=$(POD_NAME)"),
            *("--logs=/tmp/logs", "--show-logs", f"--workers={settings.workers_per_pod}"),
            *options,
        ]
    volumes, mounts = _volumes(settings, "worker.key")
    name = {"fieldRef": {"fieldPath": "metadata.name"}}
    container = {
        "name": "worker",
        "image": settings.image,
        "command": command,
        "env": [*_environment(), {"name": "POD_NAME", "valueFrom": name}],
        "resources": _resources(settings.cpu, settings.memory, settings),
        "securityContext": _container_security(),
        "volumeMounts": mounts,
    }
    return _template(settings, "worker", container, volumes, grace=settings.grace)


def _environment() -> list[Object]:
    # The root file system is read-only: caches of engines are in memory or on the node's disk.
    return [{"name": "HOME", "value": "/tmp"}, {"name": "PYTHONUNBUFFERED", "value": "1"}]


def _volumes(settings: PodSettings, key: str) -> tuple[list[Object], list[Object]]:
    """Return the volumes of a pod, of which one has the key alone, and where they are mounted."""
    secret = {
        "secretName": settings.secret,
        # The file belongs to root, and the pod's group may read it.
        "defaultMode": 0o440,
        "items": [{"key": key, "path": key}],
    }
    memory = {"medium": "Memory", "sizeLimit": settings.shared_memory}
    volumes: list[Object] = [
        {"name": "key", "secret": secret},
        {"name": "tmp", "emptyDir": {}},
        {"name": "shared-memory", "emptyDir": memory},
    ]
    mounts: list[Object] = [
        {"name": "key", "mountPath": KEYS, "readOnly": True},
        {"name": "tmp", "mountPath": "/tmp"},
        {"name": "shared-memory", "mountPath": "/dev/shm"},
    ]
    return volumes, mounts


def _resources(cpu: str, memory: str, settings: PodSettings | None = None) -> Object:
    amounts = {"cpu": str(cpu), "memory": str(memory)}
    if settings is not None and settings.gpus is not None:
        amounts[settings.gpu_resource] = str(settings.gpus)
    return {"requests": dict(amounts), "limits": dict(amounts)}


def _container_security() -> Object:
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


def _template(
    settings: PodSettings, component: str, container: Object, volumes: list[Object], *, grace: int
) -> Object:
    spec: Object = {
        "automountServiceAccountToken": False,
        # A Service named `gt` would otherwise set variables as GT_PORT.
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": grace,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": volumes,
    }
    if settings.service_account:
        spec["serviceAccountName"] = settings.service_account
    if settings.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in settings.image_pull_secrets]
    if settings.priority_class:
        spec["priorityClassName"] = settings.priority_class
    if settings.node_selector:
        spec["nodeSelector"] = dict(settings.node_selector)
    if settings.tolerations:
        spec["tolerations"] = [dict(of) for of in settings.tolerations]
    labels = {
        **settings.labels,
        **settings.matching(component),
        "app.kubernetes.io/managed-by": "gt",
    }
    return {"metadata": {"labels": labels}, "spec": spec}
