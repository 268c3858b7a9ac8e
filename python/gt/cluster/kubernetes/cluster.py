"""Clusters in Kubernetes."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gt import _gt
from gt.cluster.errors import ClusterError
from gt.cluster.folder import ClusterFolder
from gt.cluster.kubernetes.api import default_namespace, is_inside
from gt.cluster.kubernetes.lifecycle import Lifecycle, check_job_set
from gt.cluster.kubernetes.manifest import manifest
from gt.cluster.kubernetes.record import Record
from gt.cluster.kubernetes.settings import PodSettings
from gt.cluster.programs import WorkerOptions

if TYPE_CHECKING:
    from typing_extensions import Self


class Kubernetes(Lifecycle):
    """A server and workers as pods of Kubernetes.

        with gt.cluster.Kubernetes(pods=4, image="registry.example/gt:torch", gpus_per_pod=8) as c:
            gt.connect(c)

    It needs the official client, `pip install 'kubernetes>=37'`, and an image of this version of
    GT. The program may run in a pod or outside. When it dies without `close`, Kubernetes ends the
    pods after `lease` seconds and removes all objects, unless `keep` is true.

    Args:
        pods: the number of pods with workers; `scale` counts them.
        image: the image of server and workers, such as one made by GT's Dockerfile.
        namespace: where the objects are; the context's, or that of this pod, if it is None.
        context: the context of the kubeconfig; if it is None, this pod's service account, or the
            current context outside of pods.
        gpus_per_pod: the GPUs of each pod, which has a worker for each; one worker without GPU if
            it is None.
        gpu_resource: what Kubernetes calls a GPU.
        cpu: the cores of each pod with workers, as a quantity such as "4" or "500m".
        memory_request: the memory of each of them, such as "64Gi".
        server_cpu: the cores of the server's pod.
        server_memory: the memory of the server's pod.
        shared_memory: the size of /dev/shm, a part of the memory.
        queue: the name of Kueue's LocalQueue, in which the pods wait for quota.
        job_set: have the workers in a JobSet instead of a Deployment.
        service_account: the service account of the pods, which get no token of it.
        node_selector: the labels of the nodes.
        tolerations: the tolerations of the pods, as Kubernetes writes them.
        image_pull_secrets: the names of Secrets for the registry.
        priority_class: the priority class of the pods.
        storage: the name of a PersistentVolumeClaim for the server's state, from which it resumes
            on another node.
        labels: further labels of objects and pods.
        drain_timeout: the seconds in which a worker hands over what it has when its pod ends.
        connect: "service" for the name of the Service, "forward" for a port of this machine that
            leads to the pod through the API server; the first in a pod if it is None.
        lease: the seconds after which the pods of an owner that died end.
        keep: leave it running when this program ends; another one attaches to its folder.
        engine: the engine of the workers: native, pytorch, numpy, jax or module:Class.
        threads: the threads of each worker; its part of the cores if it is None.
        memory: the memory for the tensors of each worker, such as "16GB".
        name: the name of the cluster, with which those of its objects begin; a random one if it is
            None.
        folder: where key and address are; a temporary folder if it is None.
        server_options: further options of `gt server`.
        worker_options: further options of `gt worker`.

    Raises:
        ValueError: a value is not possible.
    """

    kind = "kubernetes"
    unit = "pod"

    def __init__(
        self,
        pods: int = 1,
        *,
        image: str,
        namespace: str | None = None,
        context: str | None = None,
        gpus_per_pod: int | None = None,
        gpu_resource: str = "nvidia.com/gpu",
        cpu: str | int | float = "1",
        memory_request: str = "2Gi",
        server_cpu: str = "500m",
        server_memory: str = "1Gi",
        shared_memory: str = "1Gi",
        queue: str | None = None,
        job_set: bool = False,
        service_account: str | None = None,
        node_selector: Mapping[str, str] | None = None,
        tolerations: Sequence[Mapping[str, Any]] = (),
        image_pull_secrets: Sequence[str] = (),
        priority_class: str | None = None,
        storage: str | None = None,
        labels: Mapping[str, str] | None = None,
        drain_timeout: float = 25.0,
        connect: str | None = None,
        lease: float = 60.0,
        keep: bool = False,
        engine: str | None = None,
        threads: int | None = None,
        memory: str | None = None,
        name: str | None = None,
        folder: str | os.PathLike[str] | None = None,
        server_options: Sequence[str] = (),
        worker_options: Sequence[str] = (),
    ):
        """Describe a cluster; `start` starts it."""
        arguments = {of: value for of, value in locals().items() if of not in ("self", "__class__")}
        super().__init__(pods, name or f"gt-{secrets.token_hex(4)}", folder)
        if connect not in (None, "service", "forward"):
            raise ValueError(f"connect is '{connect}', expected service, forward or None")
        if keep and folder is None:
            raise ValueError("keep=True needs a folder, by which another program attaches")
        if job_set:
            check_job_set(pods)
        self._context, self._keep = context, keep
        self._connect = connect or ("service" if context is None and is_inside() else "forward")
        self._settings = PodSettings(
            name=self.name,
            namespace=namespace or default_namespace(context),
            image=image,
            gpus=gpus_per_pod,
            gpu_resource=gpu_resource,
            cpu=f"{cpu:g}" if isinstance(cpu, float) else str(cpu),
            memory=memory_request,
            server_cpu=server_cpu,
            server_memory=server_memory,
            shared_memory=shared_memory,
            drain=drain_timeout,
            queue=queue,
            job_set=job_set,
            service_account=service_account,
            node_selector=node_selector or {},
            tolerations=tolerations,
            image_pull_secrets=image_pull_secrets,
            priority_class=priority_class,
            storage=storage,
            labels=labels or {},
            server_options=server_options,
            worker_options=WorkerOptions(engine, threads, memory, list(worker_options)),
            lease=None if keep else lease,
        )
        arguments |= {"name": self.name, "namespace": self._settings.namespace}
        self._arguments = arguments | {"folder": None, "connect": self._connect}

    @classmethod
    def attach(cls, folder: str | os.PathLike[str]) -> Self:
        """Return a cluster that another program started with this folder and keeps.

        It has its own connection. `close` ends the cluster; `detach` leaves it.

        Args:
            folder: the folder of the cluster.

        Raises:
            ClusterError: no cluster was started with this folder, or it cannot be reached.

        Example:
            cluster = gt.cluster.Kubernetes.attach("training")
            print(cluster.status())
        """
        record = Record.read(Path(folder).expanduser().absolute())
        arguments = dict(record.arguments)
        keep = arguments.pop("keep")
        cluster = cls(**arguments)
        cluster._keep, cluster._record = keep, record
        if keep:
            cluster._settings = replace(cluster._settings, lease=None)
        running = cluster._connected(record.made)
        try:
            cluster._folder = ClusterFolder(None)
            shutil.copy2(record.folder / "key", cluster._folder.path / "key")
            cluster._size = running.size()
            cluster._publish()
        except BaseException:
            cluster.detach()
            raise
        return cluster

    def script(self) -> str:
        """Return the manifest of what `start` creates."""
        return self.manifest()

    def manifest(self, *, include_key: bool = False) -> str:
        """Return the objects that `start` creates, as YAML for `kubectl create --filename -`.

        `start` adds to each object but the first that the first one owns it.

        Args:
            include_key: include the keys, which are secret; the text has a placeholder otherwise.

        Raises:
            ClusterError: the cluster has no folder with a key yet.
        """
        if not include_key:
            return manifest(self._settings, self.size, None)
        folder = self._folder
        if folder is None and self._given_folder is not None:
            folder = ClusterFolder(self._given_folder)
        if folder is None:
            raise ClusterError(
                f"the kubernetes cluster '{self.name}' has no key yet: give it a folder, or call "
                "start()"
            )
        key = folder.key.read_text().strip()
        keys = {"cluster.key": key, "worker.key": _gt.make_key("worker", key)}
        return manifest(self._settings, self.size, keys)

    def logs(self, lines: int | None = None) -> dict[str, str]:
        """Return the last lines of each pod's log, or all, by the name of the pod."""
        return self._started().logs(lines)

    def adapt(self, minimum: int, maximum: int, *, idle: float = 60.0) -> None:
        """From now on, have as many pods as there is work for, as `Cluster.adapt` describes.

        Raises:
            ValueError: the numbers do not fit, or the minimum is 0 with a JobSet.
        """
        if self._settings.job_set:
            check_job_set(minimum)
        super().adapt(minimum, maximum, idle=idle)
