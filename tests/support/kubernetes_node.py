"""A stand-in for the controllers of Kubernetes and a node: pods are processes of this machine.

Commands run as they are written, but for their paths and the server's port; the Secret is a folder.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from kubernetes_api import KubernetesApiServer, Refused

#: How often it looks, in seconds.
_EVERY = 0.05


class Node:
    """Runs the pods of an API server in a folder, until it is closed."""

    def __init__(self, api: KubernetesApiServer, folder: Path, *, images=("gt",), gpus: int = 0):
        """Run pods whose image begins as one of `images`."""
        self.api, self.folder, self.images, self.gpus = api, folder, images, gpus
        #: The most pods that the quota allows.
        self.quota = 100
        self._processes: dict[str, subprocess.Popen] = {}
        self._starts: dict[str, float] = {}
        self._next: dict[str, float] = {}
        self._signalled: dict[str, float] = {}
        self._number = 0
        api.read_log = self._log
        api.pod_port = self.port_of
        self._is_closed = threading.Event()
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End all processes."""
        self._is_closed.set()
        self._thread.join(10)
        for process in self._processes.values():
            process.kill()
            process.wait()
        if self.error is not None:
            raise self.error

    def running(self) -> list[int]:
        """Return the processes of pods that run."""
        with self.api.lock:
            return [of.pid for of in self._processes.values() if of.poll() is None]

    def process_of(self, pod: str) -> subprocess.Popen:
        return self._processes[pod]

    def port_of(self, pod: str) -> int | None:
        """Return the port of this machine at which a server's pod listens."""
        path = self._service(self.api.find("pods", pod)) / "address"
        return int(path.read_text().rsplit(":", 1)[1]) if path.exists() else None

    def _run(self) -> None:
        while not self._is_closed.wait(_EVERY):
            try:
                with self.api.lock:
                    self._control()
                    for pod in self.api.all("pods"):
                        self._keep(pod)
            except BaseException as error:
                self.error = error
                return

    # The controllers.

    def _control(self) -> None:
        for of in self.api.all("deployments"):
            self._fill(of, "Deployment", of["spec"]["replicas"])
        for of in self.api.all("jobsets"):
            for part in of["spec"]["replicatedJobs"]:
                name = f"{of['metadata']['name']}-{part['name']}-0"
                jobs = {job["metadata"]["name"]: job for job in self.api.all("jobs")}
                if name not in jobs:
                    meta = {"name": name, "ownerReferences": [_owner(of, "JobSet")]}
                    self.api.add("jobs", {"metadata": meta, "spec": part["template"]["spec"]})
                else:
                    jobs[name]["spec"]["parallelism"] = part["template"]["spec"]["parallelism"]
        for of in self.api.all("jobs"):
            name, spec, status = of["metadata"]["name"], of["spec"], of["status"]
            if spec.get("suspend"):
                continue
            status.setdefault("startTime", f"start of {name}")
            started = self._starts.setdefault(of["metadata"]["uid"], time.monotonic())
            limit = spec.get("activeDeadlineSeconds")
            if limit is not None and time.monotonic() - started > limit:
                assert spec["ttlSecondsAfterFinished"] == 0
                self.api.remove("jobs", name)
                continue
            self._fill(of, "Job", spec["parallelism"])

    def _fill(self, of, kind: str, size: int) -> None:
        pods = [
            pod
            for pod in self.api.all("pods")
            if pod["metadata"]["ownerReferences"][0]["uid"] == of["metadata"]["uid"]
            and "deletionTimestamp" not in pod["metadata"]
            and pod["status"].get("phase") not in ("Succeeded", "Failed")
        ]
        for pod in pods[size:]:
            self.api.remove("pods", pod["metadata"]["name"])
        for _ in range(size - len(pods)):
            name = of["metadata"]["name"]
            if len(self.api.all("pods")) >= self.quota:
                self._refuse(of, kind, name)
                return
            self._number += 1
            template = of["spec"]["template"]
            labels = template["metadata"]["labels"]
            meta = {"name": f"{name}-{self._number}", "labels": labels}
            meta["ownerReferences"] = [_owner(of, kind)]
            self.api.add("pods", {"metadata": meta, "spec": template["spec"]})

    def _refuse(self, of, kind: str, name: str) -> None:
        words = (
            f'pods "{name}-x" is forbidden: exceeded quota: team, requested: pods=1, used: '
            f"pods={self.quota}, limited: pods={self.quota}"
        )
        if kind == "Deployment":
            failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}
            of["status"]["conditions"] = [{**failure, "message": words}]
        else:
            self._warn(kind, name, "FailedCreate", f"Error creating: {words}")

    def _warn(self, kind: str, name: str, reason: str, words: str) -> None:
        meta = {"name": f"{name}-{reason}".lower()}
        event = {"metadata": meta, "involvedObject": {"kind": kind, "name": name}}
        try:
            self.api.add("events", {**event, "reason": reason, "message": words, "type": "Warning"})
        except Refused:
            pass

    # The node.

    def _keep(self, pod) -> None:
        name, meta, status = pod["metadata"]["name"], pod["metadata"], pod["status"]
        process = self._processes.get(name)
        if "deletionTimestamp" in meta:
            self._end(name, meta, process)
            return
        if status.get("phase") in ("Succeeded", "Failed"):
            return
        if process is None:
            if self._can_start(pod):
                self._start(pod)
            return
        code = process.poll()
        if code is None:
            ready = "worker" in name or (self._service(pod) / "address").exists()
            _set(status, "Running", {"running": {}}, ready)
            return
        policy = pod["spec"].get("restartPolicy", "Always")
        if policy == "OnFailure" and code == 0:
            _set(status, "Succeeded", {"terminated": {"exitCode": 0}}, False)
            return
        if name not in self._next:
            status["restarts"] = status.get("restarts", 0) + 1
            self._next[name] = time.monotonic() + min(0.2 * 2 ** status["restarts"], 5)
            words = f"back-off {self._next[name]:.0f}s restarting failed container"
            waiting = {"reason": "CrashLoopBackOff", "message": words}
            # The first restart follows at once.
            if status["restarts"] > 1:
                _set(status, "Running", {"waiting": waiting}, False)
        elif time.monotonic() >= self._next[name]:
            del self._next[name]
            self._start(pod)

    def _end(self, name: str, meta, process) -> None:
        if process is None or process.poll() is not None:
            del self.api.things["pods", "default"][name]
            return
        since = self._signalled.get(name)
        if since is None:
            self._signalled[name] = time.monotonic()
            process.send_signal(signal.SIGTERM)
        elif time.monotonic() - since > meta["deletionGracePeriodSeconds"]:
            process.kill()

    def _can_start(self, pod) -> bool:
        name, status, spec = pod["metadata"]["name"], pod["status"], pod["spec"]
        (container,) = spec["containers"]
        wanted = int(container["resources"]["requests"].get("nvidia.com/gpu", 0))
        if wanted > self.gpus:
            words = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
            status.update(phase="Pending", conditions=[{**condition, "message": words}])
            return False
        if not container["image"].startswith(self.images):
            words = f'Back-off pulling image "{container["image"]}"'
            waiting = {"reason": "ImagePullBackOff", "message": words}
            _set(status, "Pending", {"waiting": waiting}, False, container["image"])
            return False
        secret = spec["volumes"][0]["secret"]["secretName"]
        if secret not in self.api.things.get(("secrets", "default"), {}):
            self._warn("Pod", name, "FailedMount", f'secret "{secret}" not found')
            return False
        return True

    def _start(self, pod) -> None:
        name, spec = pod["metadata"]["name"], pod["spec"]
        (container,) = spec["containers"]
        folder = self.folder / name
        keys = folder / "keys"
        keys.mkdir(mode=0o700, parents=True, exist_ok=True)
        volume = spec["volumes"][0]["secret"]
        data = self.api.find("secrets", volume["secretName"])["data"]
        for item in volume["items"]:
            path = keys / item["path"]
            if not path.exists():
                path.touch(mode=0o600)
                path.write_text(data[item["key"]])
        service = self._service(pod)
        service.mkdir(parents=True, exist_ok=True)
        instance = pod["metadata"]["labels"]["app.kubernetes.io/instance"]
        paths = {
            "/run/secrets/gt": str(keys),
            "/var/lib/gt/state": str(self.folder / "claim"),
            "/tmp/logs": str(folder / "logs"),
            "--host=0.0.0.0": "--host=127.0.0.1",
            "--port=9000": f"--port=0\0--publish={service}/address",
            f"--address={instance}:9000": f"--address=file://{service}/address",
            "$(POD_NAME)": name,
        }
        command = "\0".join(container["command"])
        for given, here in paths.items():
            command = command.replace(given, here)
        program, *words = command.split("\0")
        start = {"gt": [sys.executable, "-m", "gt"], "python": [sys.executable]}[program]
        with (folder / "log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [*start, *words],
                **{"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log},
                start_new_session=True,
                env={**os.environ, "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"},
            )

    def _service(self, pod) -> Path:
        return self.folder / "services" / pod["metadata"]["labels"]["app.kubernetes.io/instance"]

    def _log(self, pod: str, previous: bool) -> str:
        path = self.folder / pod / "log"
        return path.read_text(errors="replace") if path.exists() else ""


def _owner(of, kind: str):
    return {"kind": kind, "name": of["metadata"]["name"], "uid": of["metadata"]["uid"]}


def _set(status, phase: str, state, ready: bool, image: str = "") -> None:
    conditions = [{"type": "Ready", "status": str(ready)}]
    restarts = status.get("restarts", 0)
    name = {"name": "container", "image": image, "state": state, "restartCount": restarts}
    status.update(phase=phase, conditions=conditions, containerStatuses=[name])
