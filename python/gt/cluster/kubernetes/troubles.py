"""Why pods do not come, in Kubernetes' own words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gt.cluster.errors import ClusterError, said
from gt.cluster.kubernetes.api import KubernetesApi, NotFoundError
from gt.cluster.kubernetes.pods import Object
from gt.cluster.kubernetes.settings import PodSettings

#: Reasons for which a container waits that do not pass by themselves.
_FATAL = {
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImageNeverPull",
    "ImageInspectError",
    "ImagePullBackOff",
    "InvalidImageName",
    "RunContainerError",
}

#: How often a container may fail before the start has failed.
_TRIES = 3

#: Reasons that every pod has on its way.
_USUAL = {"ContainerCreating", "PodInitializing"}


class Troubles:
    """Asks what Kubernetes says about the pods of a cluster."""

    def __init__(self, api: KubernetesApi, settings: PodSettings):
        """Ask about a cluster."""
        self._api, self._settings = api, settings

    def failure(self) -> str | None:
        """Return why it cannot start, with Kubernetes' own words, or None."""
        for pod in self._api.pods(self._settings.selector):
            for state in _containers(pod):
                waiting = state.get("state", {}).get("waiting", {})
                if waiting.get("reason") in _FATAL and not _may_pass(state, waiting):
                    return self._of_container(pod, state, waiting)
        return self._of_workloads()

    def notes(self) -> list[str]:
        """Return a line for each pod that does not run, and for each warning."""
        found = []
        for pod in self._api.pods(self._settings.selector):
            name, status = pod["metadata"]["name"], pod.get("status", {})
            for condition in status.get("conditions", []):
                if condition["type"] == "PodScheduled" and condition["status"] == "False":
                    found.append(
                        f"pod '{name}': {condition.get('reason')}: {condition.get('message', '')}"
                    )
            for state in _containers(pod):
                waiting = state.get("state", {}).get("waiting", {})
                if waiting.get("reason", "ContainerCreating") not in _USUAL:
                    why = self._of_container(pod, state, waiting)
                    found += why.splitlines()
        failure = self._of_workloads()
        found += failure.splitlines() if failure else []
        return [*found, *self._of_queue(), *self._warnings()]

    def _of_container(self, pod: Object, state: Object, waiting: Object) -> str:
        name, reason = pod["metadata"]["name"], waiting["reason"]
        words = waiting.get("message", "")
        if reason == "CrashLoopBackOff":
            words = self._last_words(name, state) or words
        image = f" (image {state['image']})" if "Image" in reason and "image" in state else ""
        return f"pod '{name}': {reason}{image}{said(words)}"

    def _last_words(self, pod: str, state: Object) -> str:
        """Return the last lines of a container that has ended."""
        for previous in (True, False):
            try:
                words = self._api.log(pod, state["name"], 20, previous)
            except ClusterError:
                continue
            if words.strip():
                return words
        return ""

    def _of_workloads(self) -> str | None:
        """Return why pods cannot be created, such as a quota; or why a Job has ended."""
        settings = self._settings
        for kind, name in workloads(settings):
            try:
                status = self._api.get(kind, name).get("status", {})
            except NotFoundError:
                continue  # It is not created yet.
            for condition in status.get("conditions", []):
                if condition.get("status") != "True":
                    continue
                words = condition.get("message", "")
                if condition["type"] == "ReplicaFailure" and _is_refusal(words):
                    return f"{kind} '{name}': no pod can be created{said(words)}"
                if condition["type"] in ("Failed", "Complete", "Completed"):
                    reason = condition.get("reason", "")
                    return f"{kind} '{name}' has ended: {reason}{said(words)}"
        for event in self._own_events():
            # A Job has no condition for it.
            if event.get("reason") == "FailedCreate" and _is_refusal(event.get("message", "")):
                of = event["involvedObject"]
                return (
                    f"{of.get('kind')} '{of.get('name')}': no pod can be created"
                    f"{said(event['message'])}"
                )
        return None

    def _of_queue(self) -> Iterator[str]:
        """Yield what Kueue says about what waits in its queue."""
        if self._settings.queue is None:
            return
        try:
            waiting = self._api.items("Workload")
        except ClusterError:
            return  # It is optional: this user may not be allowed to read them.
        names = {name for _, name in workloads(self._settings)}
        for workload in waiting:
            owners = workload["metadata"].get("ownerReferences", [])
            owner = next((of["name"] for of in owners if of["name"] in names), None)
            for condition in workload.get("status", {}).get("conditions", []):
                if owner and condition["type"] == "QuotaReserved" and condition["status"] != "True":
                    yield (
                        f"'{owner}' waits in the queue '{self._settings.queue}': "
                        f"{condition.get('message', '')}"
                    )

    def _warnings(self) -> list[str]:
        last: dict[tuple[Any, ...], str] = {}
        for event in self._own_events():
            of = event["involvedObject"]
            words = f"{event.get('reason')}: {event.get('message', '').strip()}"
            last[of.get("kind"), of.get("name"), event.get("reason")] = (
                f"{of.get('kind')} '{of.get('name')}': {words}"
            )
        return list(last.values())[-10:]

    def _own_events(self) -> list[Object]:
        """Return the warnings about its objects; none if this user may not read them."""
        beginnings = tuple(name for _, name in workloads(self._settings))
        try:
            events = self._api.events()
        except ClusterError:
            return []
        return [of for of in events if of["involvedObject"].get("name", "").startswith(beginnings)]


def workloads(settings: PodSettings) -> list[tuple[str, str]]:
    """Return kind and name of the objects that have pods: the server's and the workers'."""
    server = "Deployment" if settings.lease is None else "Job"
    workers = "JobSet" if settings.job_set else "Deployment"
    return [(server, settings.server), (workers, settings.workers)]


def is_ready(pod: Object) -> bool:
    """Return whether a pod serves."""
    conditions = pod.get("status", {}).get("conditions", [])
    return "deletionTimestamp" not in pod["metadata"] and any(
        of["type"] == "Ready" and of["status"] == "True" for of in conditions
    )


def _containers(pod: Object) -> list[Object]:
    status = pod.get("status", {})
    return [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]


def _may_pass(state: Object, waiting: Object) -> bool:
    """Return whether a container that fails has not failed often yet: the server may come later."""
    return waiting["reason"] == "CrashLoopBackOff" and state.get("restartCount", 0) < _TRIES


def _is_refusal(words: str) -> bool:
    """Return whether a pod is refused, and not only late."""
    return ("exceeded quota" in words or "is forbidden" in words or "Invalid value" in words) and (
        "Operation cannot be fulfilled" not in words
    )
