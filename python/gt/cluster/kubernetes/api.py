"""What is asked of a Kubernetes API server, by the official client."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from gt.cluster.errors import ClusterError, said
from gt.cluster.kubernetes.pods import Object

#: How long one request may take, in seconds.
_TIMEOUT = 20

#: Kinds outside the core group, with their group, version and plural.
_KINDS = {
    "Deployment": ("apps", "v1", "deployments"),
    "Job": ("batch", "v1", "jobs"),
    "JobSet": ("jobset.x-k8s.io", "v1alpha2", "jobsets"),
    "NetworkPolicy": ("networking.k8s.io", "v1", "networkpolicies"),
    "PodDisruptionBudget": ("policy", "v1", "poddisruptionbudgets"),
    "Workload": ("kueue.x-k8s.io", "v1beta2", "workloads"),
}

_MERGE = "application/merge-patch+json"
_JSON_PATCH = "application/json-patch+json"

#: The namespace of this pod, if this is one.
_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class NotFoundError(ClusterError):
    """What is asked for does not exist (any more)."""

    __module__ = "gt.cluster"


class ConflictError(ClusterError):
    """Another object has the name, or was changed meanwhile."""

    __module__ = "gt.cluster"


_ERRORS: dict[int, type[ClusterError]] = {404: NotFoundError, 409: ConflictError}


def kubernetes() -> ModuleType:
    """Return the official client.

    Raises:
        ClusterError: it is not installed.
    """
    try:
        import kubernetes.client
        import kubernetes.config
        import kubernetes.stream
    except ImportError as error:
        raise ClusterError(
            "gt.cluster.Kubernetes needs the Kubernetes client, which is not installed: "
            f"pip install 'kubernetes>=37'\n  {error}"
        ) from None
    module: ModuleType = kubernetes
    return module


def is_inside() -> bool:
    """Return whether this program runs in a pod."""
    return "KUBERNETES_SERVICE_HOST" in os.environ


def default_namespace(context: str | None) -> str:
    """Return the namespace of this pod, or of a context of the kubeconfig."""
    if context is None and is_inside():
        return _OWN_NAMESPACE.read_text().strip() if _OWN_NAMESPACE.exists() else "default"
    config = kubernetes().config
    try:
        contexts, active = config.list_kube_config_contexts(_config_file())
    except config.ConfigException as error:
        raise _no_configuration(error) from None
    for found in contexts:
        if found["name"] == context or (context is None and found is active):
            return str(found["context"].get("namespace") or "default")
    return str(active["context"].get("namespace") or "default") if context is None else "default"


def _config_file() -> str | None:
    # The client reads the variable when it is imported only.
    return os.environ.get("KUBECONFIG") or None


class KubernetesApi:
    """The objects and pods of one namespace."""

    def __init__(self, context: str | None, namespace: str):
        """Connect by a context of the kubeconfig, or as the service account of this pod.

        Raises:
            ClusterError: there is no such context, or no configuration.
        """
        package = kubernetes()
        self._errors, self.namespace = package.client.exceptions, namespace
        self._package = package
        try:
            if context is None and is_inside():
                configuration = package.client.Configuration()
                package.config.load_incluster_config(client_configuration=configuration)
                client = package.client.ApiClient(configuration)
            else:
                client = package.config.new_client_from_config(_config_file(), context)
        except package.config.ConfigException as error:
            raise _no_configuration(error) from None
        self.host = str(client.configuration.host)
        self._client = client
        self._core = package.client.CoreV1Api(client)
        self._custom = package.client.CustomObjectsApi(client)

    def create(self, thing: Object) -> Object:
        """Create an object; return it as it is then."""
        kind, name = thing["kind"], thing["metadata"]["name"]
        with self._asking(f"create {kind} '{name}'"):
            if kind in _KINDS:
                return self._read(
                    self._custom.create_namespaced_custom_object(
                        *self._place(kind), body=thing, **_RAW
                    )
                )
            create = getattr(self._core, f"create_namespaced_{kind.lower()}")
            return self._read(create(self.namespace, thing, **_RAW))

    def get(self, kind: str, name: str) -> Object:
        """Return an object."""
        with self._asking(f"read {kind} '{name}'"):
            if kind in _KINDS:
                return self._read(
                    self._custom.get_namespaced_custom_object(*self._place(kind), name=name, **_RAW)
                )
            read = getattr(self._core, f"read_namespaced_{kind.lower()}")
            return self._read(read(name, self.namespace, **_RAW))

    def items(self, kind: str, selector: str = "") -> list[Object]:
        """Return the objects of a kind, which the client has no types for, with some labels."""
        with self._asking(f"list {kind}s"):
            found = self._read(
                self._custom.list_namespaced_custom_object(
                    *self._place(kind), label_selector=selector, **_RAW
                )
            )
            return list(found.get("items", []))

    def patch(self, kind: str, name: str, change: Object | list[Object]) -> Object:
        """Change an object of a kind outside the core group; return it as it is then."""
        content = _JSON_PATCH if isinstance(change, list) else _MERGE
        with self._asking(f"change {kind} '{name}'"):
            return self._read(
                self._custom.patch_namespaced_custom_object(
                    *self._place(kind),
                    name=name,
                    body=change,
                    _content_type=content,
                    **_RAW,
                )
            )

    def scale(self, kind: str, name: str, size: int) -> None:
        """Set how many pods an object of a kind outside the core group has."""
        with self._asking(f"scale {kind} '{name}' to {size}"):
            self._read(
                self._custom.patch_namespaced_custom_object_scale(
                    *self._place(kind),
                    name=name,
                    body={"spec": {"replicas": size}},
                    _content_type=_MERGE,
                    **_RAW,
                )
            )

    def delete(self, kind: str, name: str, uid: str | None = None) -> None:
        """Delete an object and what it owns, unless it is gone or another one by now."""
        options = self._package.client.V1DeleteOptions(
            propagation_policy="Foreground", preconditions={"uid": uid} if uid else None
        )
        try:
            with self._asking(f"delete {kind} '{name}'"):
                if kind in _KINDS:
                    done = self._custom.delete_namespaced_custom_object(
                        *self._place(kind), name=name, body=options, **_RAW
                    )
                else:
                    remove = getattr(self._core, f"delete_namespaced_{kind.lower()}")
                    done = remove(name, self.namespace, body=options, **_RAW)
                self._read(done)
        except (NotFoundError, ConflictError):
            pass

    def pods(self, selector: str) -> list[Object]:
        """Return the pods with some labels, also those that are ending."""
        with self._asking("list pods"):
            found = self._core.list_namespaced_pod(self.namespace, label_selector=selector, **_RAW)
            return list(self._read(found)["items"])

    def end_pods(self, selector: str, grace: int) -> None:
        """Delete the pods with some labels; each has some seconds to end."""
        with self._asking("delete pods"):
            remove = self._core.delete_collection_namespaced_pod
            self._read(
                remove(self.namespace, label_selector=selector, grace_period_seconds=grace, **_RAW)
            )

    def events(self) -> list[Object]:
        """Return the warnings of the last hour, or what the cluster keeps."""
        with self._asking("list events"):
            found = self._core.list_namespaced_event(
                self.namespace, field_selector="type=Warning", limit=1000, **_RAW
            )
            return list(self._read(found)["items"])

    def log(self, pod: str, container: str, lines: int | None, previous: bool = False) -> str:
        """Return the last lines that a container has written, or all."""
        with self._asking(f"read the log of pod '{pod}'"):
            found = self._core.read_namespaced_pod_log(
                *(pod, self.namespace),
                container=container,
                tail_lines=lines,
                previous=previous,
                **_RAW,
            )
            return bytes(found.data).decode(errors="replace")

    def connect(self, pod: str, port: int) -> Any:
        """Return a connection to a port of a pod, which has a `socket` for that port."""
        package = self._package
        with self._asking(f"connect to pod '{pod}'"):
            # It changes its API client for the time of the call, which other threads must not use.
            with package.client.ApiClient(self._client.configuration) as own:
                method = package.client.CoreV1Api(own).connect_get_namespaced_pod_portforward
                return package.stream.portforward(method, pod, self.namespace, ports=str(port))

    def close(self) -> None:
        """End the connections."""
        self._client.rest_client.pool_manager.clear()
        self._client.close()

    def _place(self, kind: str) -> tuple[str, str, str, str]:
        group, version, plural = _KINDS[kind]
        return group, version, self.namespace, plural

    @staticmethod
    def _read(response: Any) -> Object:
        """Return the body of a response, which ends its use of a connection."""
        result: Object = json.loads(response.data)
        return result

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        """Turn errors of the client into a ClusterError that says what was asked."""
        from urllib3.exceptions import HTTPError

        try:
            yield
        except self._errors.ApiException as error:
            kind = _ERRORS.get(error.status, ClusterError)
            why = f"{error.status} {error.reason}" if error.status else "no connection"
            raise kind(
                f"Kubernetes does not {what} in the namespace '{self.namespace}': {why}"
                f"{said(_message(error))}"
            ) from None
        except (HTTPError, OSError, self._errors.OpenApiException) as error:
            raise ClusterError(
                f"the Kubernetes API server at {self.host} cannot be reached, to {what}"
                f"{said(str(error))}"
            ) from None


#: Responses as they are: Kubernetes has fields that a version of the client does not know.
_RAW: dict[str, Any] = {"_preload_content": False, "_request_timeout": _TIMEOUT}


def _message(error: Any) -> str:
    """Return what the API server says about a failure."""
    body = error.body.decode(errors="replace") if isinstance(error.body, bytes) else error.body
    try:
        return str(json.loads(body)["message"])
    except (TypeError, ValueError, KeyError):
        return str(body or error.reason or "")


def _no_configuration(error: Exception) -> ClusterError:
    return ClusterError(
        "there is no configuration for Kubernetes: `kubectl config get-contexts` lists what there "
        f"is{said(str(error))}"
    )
