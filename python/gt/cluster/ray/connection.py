"""The connection to Ray, which several clusters of a program share."""

from __future__ import annotations

import importlib
import logging
import socket
import threading
from typing import Any

from gt.cluster.errors import ClusterError, said

#: How long it may take to reach an address, in seconds.
_REACH_WITHIN = 5.0


def ray_module() -> Any:
    """Return Ray's package.

    Raises:
        ClusterError: it is not installed.
    """
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise ClusterError(f"gt.cluster.Ray needs Ray: pip install ray{said(str(error))}") from None


class Connection:
    """The connection of this program to Ray.

    The program's own one is used if it has called `ray.init`, and never ended. Otherwise the first
    cluster connects, and the last one disconnects, which ends a Ray that was started so.
    """

    _lock = threading.Lock()
    _users = 0
    _is_ours = False

    def __init__(
        self,
        address: str | None,
        namespace: str | None,
        runtime_env: dict[str, Any],
        *,
        starts: bool = True,
    ):
        """Connect.

        Args:
            address: None for the program's connection or a Ray of this machine, "auto", host:port,
                or ray://host:port.
            namespace: Ray's namespace of the connection, if it is made here.
            runtime_env: the environment of all that runs for the connection, if it is made here.
            starts: whether a Ray is started here if there is none and no address is given.

        Raises:
            ClusterError: Ray is not installed, or cannot be reached.
        """
        self.ray = ray_module()
        self.is_new = False
        with Connection._lock:
            if not self.ray.is_initialized():
                options = {"namespace": namespace, "runtime_env": runtime_env or None}
                _connect(self.ray, address, starts, options)
                self.is_new = True
                Connection._is_ours, Connection._users = True, 0
            Connection._users += 1
        self._is_open = True

    @property
    def is_local(self) -> bool:
        """Return whether Ray was started here for these clusters, so that it does not grow."""
        if not Connection._is_ours:
            return False
        node = self.ray._private.worker._global_node
        return node is not None and bool(node.head)

    def close(self) -> None:
        """Disconnect, if no other cluster needs the connection and it was made here."""
        with Connection._lock:
            if not self._is_open:
                return
            self._is_open = False
            Connection._users -= 1
            if Connection._users == 0 and Connection._is_ours:
                Connection._is_ours = False
                self.ray.shutdown()


def _connect(ray: Any, address: str | None, starts: bool, options: dict[str, Any]) -> None:
    where = f"at the address '{address}'" if address else "on this machine"
    endpoint = reachable_part(address)
    if endpoint is not None:
        try:
            socket.create_connection(endpoint, _REACH_WITHIN).close()
        except OSError as error:
            raise ClusterError(f"no Ray can be reached {where}{said(str(error))}") from None
    options = {**options, "log_to_driver": False}
    if not (address or "").startswith("ray://"):
        options["logging_level"] = logging.WARNING
    try:
        ray.init("auto" if address is None and not starts else address, **options)
    except ImportError as error:
        raise ClusterError(
            f"the address '{address}' needs the client of Ray: pip install \"ray[client]\""
            f"{said(str(error))}"
        ) from None
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        ray.shutdown()
        raise ClusterError(f"no connection to Ray {where}{said(str(error))}") from None


def reachable_part(address: str | None) -> tuple[str, int] | None:
    """Return the host and port of an address of Ray, or None if it has none.

    Raises:
        ClusterError: it is none of the forms that Ray has.
    """
    if address in (None, "auto", "local"):
        return None
    assert address is not None
    scheme, _, rest = address.rpartition("://")
    host, _, port = rest.split("/")[0].split("?")[0].rpartition(":")
    if scheme not in ("", "ray"):
        return None  # Ray has clients for others, or says that it has none.
    if scheme == "ray" and not host:
        host, port = port, "10001"
    if not host or not port.isdecimal():
        raise ClusterError(
            f"the address of Ray is '{address}', expected \"auto\", host:port or ray://host:port"
        )
    return host.strip("[]"), int(port)
