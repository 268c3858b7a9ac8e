"""A Ray of several nodes on this machine, and what runs of a cluster there."""

import gc
import json
import os
import socket
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

#: The CPUs of each node, and the GPUs of each but the first; GPUs are only counted.
CPUS, GPUS = 4, 2

NODES = 3


#: A program that starts a cluster, prints its name, folder and processes, and waits.
OWNER = """
import json, sys
import gt.cluster
import ray_nodes
cluster = gt.cluster.Ray(**json.loads(sys.argv[1])).start()
found = [cluster._plan.cluster, str(cluster.folder.path), ray_nodes.processes(cluster)]
print(json.dumps(found), flush=True)
sys.stdin.read()
"""


def prepare_environment() -> None:
    """Set what Ray reads in this process and those that it starts."""
    os.environ["RAY_AUTH_MODE"] = "disabled"
    os.environ["RAY_DEDUP_LOGS"] = "0"
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    package = str(Path(__file__).resolve().parents[2] / "python")
    given = os.environ.get("PYTHONPATH", "")
    if package not in given.split(os.pathsep):
        os.environ["PYTHONPATH"] = f"{package}{os.pathsep}{given}" if given else package


def free_port() -> int:
    """Return a port that no program listens at now."""
    with socket.socket() as found:
        found.bind(("", 0))
        return int(found.getsockname()[1])


@contextmanager
def running_ray():
    """Run a Ray of several nodes, to which this process is connected; yield its address."""
    prepare_environment()
    import ray
    from ray.cluster_utils import Cluster

    port = free_port()
    head = {"num_cpus": CPUS, "num_gpus": 0, "include_dashboard": False}
    head["ray_client_server_port"] = port
    with warnings.catch_warnings():
        # Ray leaves files to the collector.
        warnings.simplefilter("ignore", ResourceWarning)
        nodes = Cluster(initialize_head=True, head_node_args=head)
        gc.collect()
    try:
        for _ in range(NODES - 1):
            nodes.add_node(num_cpus=CPUS, num_gpus=GPUS)
        nodes.wait_for_nodes()
        nodes.client = f"ray://{nodes.address.split(':')[0]}:{port}"
        ray.init(address=nodes.address, namespace="tests", log_to_driver=False)
        yield nodes
    finally:
        ray.shutdown()
        nodes.shutdown()


def eventually(question, limit: float = 40.0):
    """Return the first true answer; errors count as false.

    Raises:
        AssertionError: there was none within the limit in seconds.
    """
    until, last = time.monotonic() + limit, None
    while time.monotonic() < until:
        try:
            last = question()
        except Exception as error:
            last = error
        else:
            if last:
                return last
        time.sleep(0.05)
    raise AssertionError(f"not within {limit:g} s: {last!r}")


def preempt(node: str, seconds: int) -> None:
    """Have Ray say that a node will end in some seconds."""
    import ray
    from ray.core.generated import autoscaler_pb2

    reason = autoscaler_pb2.DrainNodeReason.Value("DRAIN_NODE_REASON_PREEMPTION")
    deadline = int((time.time() + seconds) * 1000)
    client = ray._private.worker.global_worker.gcs_client
    is_accepted, words = client.drain_node(node, reason, "a test", deadline)
    assert is_accepted, words


def processes(cluster) -> dict:
    """Return the process IDs of each actor and its child, by "server" or the worker's number."""
    import ray

    members = cluster._pool._members
    named = {"server": members.server, **members.workers}
    return {
        name: ray.get(member.actor.processes.remote(), timeout=20) for name, member in named.items()
    }


def is_running(process: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def programs_of(cluster: str) -> list[int]:
    """Return the processes with the name of a cluster, or of its folder, in their command."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if cluster in command and "gt." in command and is_running(int(path.parent.name)):
            found.append(int(path.parent.name))
    return found


def start_owner(options: dict) -> tuple[subprocess.Popen, list]:
    """Start a program that owns a cluster; return it and what it prints."""
    here = str(Path(__file__).parent)
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, json.dumps(options)],
        env={**os.environ, "PYTHONPATH": f"{os.environ['PYTHONPATH']}{os.pathsep}{here}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    line = owner.stdout.readline()
    if not line:
        raise AssertionError(f"the owner has failed: {owner.stderr.read()}")
    return owner, json.loads(line)
