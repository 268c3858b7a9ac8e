"""A stand-in for a Kubernetes API server: objects in memory over HTTP, with their owners.

`kubernetes_node` adds controllers and a node that runs the pods as processes.
"""

import json
import re
import threading
import uuid
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlparse

from kubernetes_forward import serve_forward

Object = dict

_PATH = re.compile(
    r"/(?:api/v1|apis/(?P<group>[^/]+)/[^/]+)/namespaces/(?P<namespace>[^/]+)/(?P<plural>[^/]+)"
    r"(?:/(?P<name>[^/]+)(?:/(?P<part>log|scale|portforward))?)?"
)

#: The plurals that it knows; the rest is 404, as for a definition that is not installed.
_BUILT_IN = {
    *("secrets", "services", "pods", "events", "deployments", "jobs"),
    *("networkpolicies", "poddisruptionbudgets"),
}


class Refused(Exception):
    """An answer other than 2xx."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status, self.message = status, message


class KubernetesApiServer:
    """Objects of namespaces, over HTTP at a port that the system chooses."""

    def __init__(self, *, namespaces: tuple[str, ...] = ("default",), more: tuple[str, ...] = ()):
        """Serve; `more` are the plurals of definitions that are installed."""
        self.lock = threading.RLock()
        self.things: dict[tuple[str, str], dict[str, Object]] = {}
        self.namespaces, self.plurals = namespaces, _BUILT_IN | set(more)
        #: Requests, as (method, plural, body).
        self.requests: list[tuple[str, str, Object | list | None]] = []
        #: Answers that are given instead: (method, plural) to (status, message).
        self.faults: dict[tuple[str, str], tuple[int, str]] = {}
        self.read_log: Callable[[str, bool], str] = lambda pod, previous: ""
        self.pod_port: Callable[[str], int | None] = lambda pod: None
        server = self

        class Handler(_Handler):
            api = server

        self._http = _Http(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(10)

    def write_config(self, path: Path, namespace: str | None = None) -> None:
        """Write a kubeconfig with the context `test`."""
        context = {"cluster": "test", "user": "test"}
        if namespace is not None:
            context["namespace"] = namespace
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": self.url}}],
            "users": [{"name": "test", "user": {}}],
            "contexts": [{"name": "test", "context": context}],
        }
        path.write_text(json.dumps(config))

    def all(self, plural: str, namespace: str = "default") -> list[Object]:
        """Return the objects of a kind."""
        with self.lock:
            return list(self.things.get((plural, namespace), {}).values())

    def count(self) -> int:
        """Return how many objects there are, besides events."""
        with self.lock:
            return sum(len(of) for (plural, _), of in self.things.items() if plural != "events")

    def add(self, plural: str, thing: Object, namespace: str = "default") -> Object:
        """Store a new object."""
        with self.lock:
            found = self.things.setdefault((plural, namespace), {})
            name = thing["metadata"]["name"]
            if name in found:
                raise Refused(409, f'{plural} "{name}" already exists')
            thing = json.loads(json.dumps(thing))
            thing["metadata"]["uid"] = str(uuid.uuid4())
            thing.setdefault("status", {})
            if plural == "secrets":
                thing["data"] = thing.pop("stringData", {})
            found[name] = thing
            return thing

    def find(self, plural: str, name: str, namespace: str = "default") -> Object:
        with self.lock:
            found = self.things.get((plural, namespace), {}).get(name)
            if found is None:
                raise Refused(404, f'{plural} "{name}" not found')
            return found

    def remove(self, plural: str, name: str, namespace: str = "default") -> None:
        """Remove an object and all that it owns; pods end first."""
        with self.lock:
            thing = self.find(plural, name, namespace)
            if plural == "pods":
                thing["metadata"].setdefault("deletionTimestamp", "now")
                grace = thing["spec"].get("terminationGracePeriodSeconds", 30)
                thing["metadata"].setdefault("deletionGracePeriodSeconds", grace)
                return
            del self.things[plural, namespace][name]
            uid = thing["metadata"]["uid"]
            for (kind, where), found in list(self.things.items()):
                for of in list(found.values()):
                    owners = of["metadata"].get("ownerReferences", [])
                    if any(owner["uid"] == uid for owner in owners) and where == namespace:
                        self.remove(kind, of["metadata"]["name"], where)


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    # Many clients connect at once.
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """A client has ended; what went wrong otherwise, the client's test shows."""


class _Handler(BaseHTTPRequestHandler):
    api: KubernetesApiServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._answer(None)

    do_DELETE = do_GET

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self._answer(json.loads(self.rfile.read(length)) if length else None)

    do_PATCH = do_POST

    def _answer(self, body: Object | list | None) -> None:
        if self.command == "DELETE" and (length := int(self.headers.get("Content-Length") or 0)):
            body = json.loads(self.rfile.read(length))
        url = urlparse(self.path)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        try:
            match = _PATH.fullmatch(url.path)
            if match is None or match["plural"] not in self.api.plurals:
                raise Refused(404, "404 page not found")
            place = match["plural"], match["namespace"]
            self.api.requests.append((self.command, match["plural"], body))
            if fault := self.api.faults.get((self.command, match["plural"])):
                raise Refused(*fault)
            if match["part"] == "portforward":
                port = self.api.pod_port(match["name"])
                if port is None:
                    raise Refused(500, "the pod does not listen")
                serve_forward(self, int(query["ports"]), port)
                self.close_connection = True
                return
            if match["part"] == "log":
                text = self.api.read_log(match["name"], query.get("previous") == "True")
                lines = text.splitlines(keepends=True)[-int(query.get("tailLines", 10**9)) :]
                self._send(200, "".join(lines).encode(), "text/plain")
                return
            answer = self._do(place, match["name"], match["part"], query, body)
            self._send(200 if self.command != "POST" else 201, json.dumps(answer).encode())
        except Refused as error:
            status = {"kind": "Status", "status": "Failure", "message": error.message}
            self._send(error.status, json.dumps({**status, "code": error.status}).encode())

    def _do(self, place, name, part, query, body):
        api, (plural, namespace) = self.api, place
        with api.lock:
            if self.command == "POST":
                if namespace not in api.namespaces:
                    raise Refused(404, f'namespaces "{namespace}" not found')
                return api.add(plural, body, namespace)
            if name is None:
                found = [of for of in api.all(*place) if _matches(of, query.get("labelSelector"))]
                if self.command == "DELETE":
                    for of in found:
                        self._delete(place, of["metadata"]["name"], query)
                return {"kind": "List", "items": found}
            thing = api.find(plural, name, namespace)
            if self.command == "DELETE":
                wanted = ((body or {}).get("preconditions") or {}).get("uid")
                if wanted not in (None, thing["metadata"]["uid"]):
                    raise Refused(409, "the UID in the precondition does not match")
                self._delete(place, name, query)
                return {"kind": "Status", "status": "Success"}
            if self.command == "PATCH":
                kind = self.headers["Content-Type"]
                if kind == "application/json-patch+json":
                    for change in body:
                        _replace(thing, change["path"].split("/")[1:], change["value"])
                elif kind == "application/merge-patch+json":
                    _merge(thing, body)
                else:
                    raise Refused(415, f"the content type {kind} is not expected")
            return thing

    def _delete(self, place, name, query) -> None:
        plural, namespace = place
        if "gracePeriodSeconds" in query:
            thing = self.api.find(plural, name, namespace)
            grace = int(query["gracePeriodSeconds"])
            before = thing["metadata"].get("deletionGracePeriodSeconds", grace)
            thing["metadata"]["deletionGracePeriodSeconds"] = min(grace, before)
        self.api.remove(plural, name, namespace)

    def _send(self, status: int, content: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _matches(thing: Object, selector: str | None) -> bool:
    labels = thing["metadata"].get("labels", {})
    wanted = dict(part.split("=") for part in selector.split(",")) if selector else {}
    return all(labels.get(name) == value for name, value in wanted.items())


def _merge(thing: Object, change: Object) -> None:
    for name, value in change.items():
        if isinstance(value, dict) and isinstance(thing.get(name), dict):
            _merge(thing[name], value)
        else:
            thing[name] = value


def _replace(thing, path: list[str], value) -> None:
    *way, last = path
    for step in way:
        thing = thing[int(step)] if isinstance(thing, list) else thing[step]
    thing[last] = value
