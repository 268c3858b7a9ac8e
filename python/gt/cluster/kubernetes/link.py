"""How this program reaches the server."""

from __future__ import annotations

import socket
from typing import Any

from gt.cluster.errors import ClusterError
from gt.cluster.kubernetes.api import KubernetesApi
from gt.cluster.kubernetes.forward import Forward
from gt.cluster.kubernetes.objects import CLIENT_LABEL
from gt.cluster.kubernetes.settings import PORT, PodSettings
from gt.cluster.kubernetes.troubles import is_ready

#: How long it is tried to connect to the Service, in seconds.
_TIMEOUT = 3


class ServerLink:
    """The address of the server for this program: its Service, or a port that leads to its pod."""

    def __init__(self, api: KubernetesApi, settings: PodSettings, how: str):
        """Reach it as `service` or `forward`."""
        self._api, self._settings = api, settings
        self._forward = Forward(self._connect, PORT) if how == "forward" else None

    @property
    def address(self) -> str:
        """Return the address."""
        return self._forward.address if self._forward else f"{self._settings.host}:{PORT}"

    @property
    def failure(self) -> str | None:
        """Return why the server was not reached, or what to look at; None if nothing is known."""
        if self._forward is not None:
            return self._forward.failure
        try:
            if not self.is_ready():
                return None
        except ClusterError as error:
            return str(error)
        try:
            socket.create_connection((self._settings.host, PORT), _TIMEOUT).close()
            return None
        except OSError as error:
            why = str(error)
        label = f"{CLIENT_LABEL}={self._settings.name}"
        return (
            f"the server does not answer at {self.address}: the pods of programs need the label "
            f"{label} ({why})"
        )

    def is_ready(self) -> bool:
        """Return whether the server's pod serves."""
        return self._pod() is not None

    def close(self) -> None:
        """End the connections of this program."""
        if self._forward is not None:
            self._forward.close()

    def _pod(self) -> str | None:
        selector = f"{self._settings.selector},app.kubernetes.io/component=server"
        pods = [of["metadata"]["name"] for of in self._api.pods(selector) if is_ready(of)]
        return pods[0] if pods else None

    def _connect(self) -> Any:
        pod = self._pod()
        if pod is None:
            raise ClusterError(f"the server of '{self._settings.name}' has no pod that is ready")
        return self._api.connect(pod, PORT)
