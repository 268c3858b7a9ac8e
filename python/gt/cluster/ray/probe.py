"""A look at the nodes of Ray before actors start there: an actor without GT would never end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gt import __version__
from gt.cluster.errors import ClusterError, said
from gt.cluster.ray.groups import Group


class Probe:
    """Asks one bundle on each node of a placement group which version of GT is installed."""

    def __init__(self, ray: Any, group: Group | None, runtime_env: dict[str, Any] | None):
        """Begin to ask."""
        self._ray = ray
        options: dict[str, Any] = {"num_cpus": 0, "max_retries": 0}
        if runtime_env:
            options["runtime_env"] = runtime_env
        places: list[dict[str, Any]] = [{}]
        if group is not None:
            by_node = {node: bundle for bundle, node in group.placed().items()}
            places = [group.place(bundle) for bundle in by_node.values()]
        task = ray.remote(_question())
        self._calls = [task.options(**options, **place).remote() for place in places]

    def is_answered(self) -> bool:
        """Return whether all have answered as they should.

        Raises:
            ClusterError: GT is missing on a node, is another version, or Ray cannot run a task.
        """
        ready, waiting = self._ray.wait(self._calls, num_returns=len(self._calls), timeout=0.1)
        for call in ready:
            try:
                node, version, words = self._ray.get(call)
            except self._ray.exceptions.RayError as error:
                raise ClusterError(
                    f"Ray cannot run a task on its nodes{said(str(error))}"
                ) from None
            if version is None:
                raise ClusterError(
                    f"the node {node} of Ray has no GT: install it there, or name it in "
                    f'runtime_env, as {{"pip": ["gt-tensor=={__version__}"]}}{said(words)}'
                )
            if version != __version__:
                raise ClusterError(
                    f"the node {node} of Ray has gt {version}, and this program {__version__}: "
                    "install the same version"
                )
        return not waiting


def _question() -> Callable[[], tuple[str, str | None, str]]:
    # A function inside a function is sent as code: the node need not have this module.
    def installed() -> tuple[str, str | None, str]:
        import socket

        try:
            import gt
        except ImportError as error:
            return socket.gethostname(), None, str(error)
        return socket.gethostname(), gt.__version__, ""

    return installed
