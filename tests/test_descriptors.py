"""Few file descriptors: both sides raise or log an error, and no process aborts."""

import re
import resource
import subprocess
import sys
import threading
import time

import gt
import pytest
from processes import cluster, embedded_only, run_program

pytestmark = embedded_only


@pytest.fixture(scope="module")
def address():
    with cluster(1) as (address, _):
        yield address


@pytest.mark.parametrize("left", [0, 1, 2, 4, 5, 7, 9, 11])
def test_a_client_with_too_few_descriptors_raises(address, left):
    done = run_program("descriptors/nearly_out", address, left, 64, timeout=30)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ConnectionError"), done.stdout
    assert re.search(r"file descriptors|Too many open files", done.stdout), done.stdout


@pytest.mark.parametrize("left", range(12, 20))
def test_a_client_with_barely_enough_descriptors_works_or_raises(address, left):
    done = run_program("descriptors/nearly_out", address, left, 64, timeout=30)
    assert done.returncode == 0, done.stderr
    assert re.search(r"sum 3.0|file descriptors|Too many open files", done.stdout), done.stdout


def test_a_soft_limit_is_raised(address):
    done = run_program("descriptors/nearly_out", address, 3, 256, timeout=30)
    assert done.stdout == "sum 3.0\nlong 300000.0\n", (done.stdout, done.stderr)


@pytest.mark.parametrize("limit", range(6, 30))
@pytest.mark.parametrize("kind", ["server", "worker"])
def test_servers_and_workers_with_few_descriptors_start_or_exit_with_an_error(address, kind, limit):
    where = ["-p", "0"] if kind == "server" else ["--host", "localhost", "-p", address[10:]]
    if kind == "server":
        import socket

        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            where[1] = str(probe.getsockname()[1])
    process = subprocess.Popen(
        [sys.executable, "-m", f"gt.{kind}", *where],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)),
    )
    try:
        if not process.stdout.readline().startswith("gt "):
            errors = process.communicate(timeout=20)[1]
            assert process.returncode == 1, (process.returncode, errors)
            assert re.search(r"file descriptors|Too many open files|Errno 24", errors), errors
    finally:
        process.terminate()
        process.communicate(timeout=20)


@pytest.mark.parametrize("limit", [24, 48])
@pytest.mark.parametrize("kind", ["tcp", "ipc"])
def test_clients_that_a_server_has_no_descriptors_for_raise(limit, kind, tmp_path):
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    where = ["-p", port] if kind == "tcp" else ["--ipc", str(tmp_path / "socket")]
    address = f"localhost:{port}" if kind == "tcp" else f"ipc://{tmp_path}/socket"
    server = subprocess.Popen(
        [sys.executable, "-m", "gt.server", *where],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)),
    )
    place = ["--address", address]
    worker = None
    sessions, errors = [], []

    def connect():
        try:
            sessions.append(gt.Session(address))
        except ConnectionError as error:
            errors.append(str(error))

    try:
        assert server.stdout.readline().startswith("gt server: listening")
        worker = subprocess.Popen(
            [sys.executable, "-m", "gt.worker", *place], stdout=subprocess.PIPE, text=True
        )
        assert worker.stdout.readline().startswith("gt worker")
        threads = [threading.Thread(target=connect) for _ in range(limit)]
        for thread in threads:
            thread.start()
            time.sleep(0.01)
        for thread in threads:
            thread.join(timeout=30)
        assert len(sessions) + len(errors) == limit and sessions and errors
        assert all("has no file descriptors left" in error for error in errors), set(errors)
        with sessions[0]:
            assert gt.ones(3).sum().item() == 3.0, "connected clients are served"
        for session in sessions:
            session.close()
        sessions.clear()
        until = time.monotonic() + 20
        while not sessions and time.monotonic() < until:
            connect()
        with sessions[0]:
            assert gt.ones(3).sum().item() == 3.0, "a new client connects"
    finally:
        for session in sessions:
            session.close()
        for process in filter(None, [worker, server]):
            process.terminate()
        log = server.communicate(timeout=20)[1]
        if worker:
            worker.communicate(timeout=20)
    assert f"no file descriptors are left (the limit is {limit})" in log, log
