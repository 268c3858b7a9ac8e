"""Unusual paths, folders and moments: errors name them, and files of others are not touched."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import gt
import pytest
from processes import (
    cluster,
    embedded_only,
    linux_only,
    program_command,
    run_gt,
    run_program,
)

pytestmark = embedded_only


@contextmanager
def server(*options: str, **environment: str):
    """Yield the process of a server and the first line that it prints."""
    command = [sys.executable, "-m", "gt.server", *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env={**os.environ, **environment}, **pipes) as process:
        try:
            yield process, process.stdout.readline()
        finally:
            process.send_signal(signal.SIGCONT)
            process.terminate()


def free_port(host: str = "127.0.0.1") -> str:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return str(probe.getsockname()[1])


def has_v6() -> bool:
    try:
        free_port("::1")
    except OSError:
        return False
    return True


def test_a_long_socket_path_is_named_with_its_limit(tmp_path):
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    for command in [
        run_gt("server", "--ipc", str(folder / "socket")),
        run_gt("worker", "--address", f"ipc://{folder}/socket"),
        run_program("network/connect", f"ipc://{folder}/socket"),
    ]:
        text = command.stdout + command.stderr
        assert "bytes, and the system takes" in text and "shorter path" in text, text


def test_the_longest_socket_path_works(tmp_path):
    path = "/tmp/" + str(os.getpid())
    path += "x" * (107 - len(path) if sys.platform == "linux" else 0)
    with server("--ipc", path) as (process, line):
        assert line.startswith("gt server: listening"), process.stderr.read()
        worker = subprocess.Popen(
            [sys.executable, "-m", "gt.worker", "--address", f"ipc://{path}"],
            stdout=subprocess.PIPE,
        )
        worker.stdout.readline()
        assert run_program("network/connect", f"ipc://{path}").stdout == "3.0\n"
        worker.terminate()
        worker.communicate(timeout=20)


@pytest.mark.parametrize("kind", ["file", "link", "folder", "pipe"])
def test_files_that_are_no_sockets_are_not_replaced(tmp_path, kind):
    path, precious = tmp_path / "place", tmp_path / "precious"
    precious.write_text("precious")
    if kind == "file":
        path.write_text("precious")
    elif kind == "link":
        path.symlink_to(precious)
    elif kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    before = path.lstat()
    done = run_gt("server", "--ipc", str(path), timeout=20)
    assert done.returncode == 1 and "no socket" in done.stderr, done.stderr
    assert path.lstat().st_ino == before.st_ino and precious.read_text() == "precious"


def test_a_missing_key_is_reported_with_its_path(tmp_path):
    with cluster(0) as (address, _):
        done = run_program("network/connect", address, TMPDIR=str(tmp_path), XDG_RUNTIME_DIR="")
    port = address.rpartition(":")[2]
    place = f"{tmp_path}/gt-{os.geteuid()}/server-{port}.key"
    assert f"no key for the server at {address} was found in {place}" in done.stdout, done.stdout
    assert "XDG_RUNTIME_DIR and TMPDIR" in done.stdout


def test_an_empty_variable_counts_as_unset(tmp_path):
    port = free_port()
    empty = {"TMPDIR": "", "XDG_RUNTIME_DIR": ""}
    with server("-p", port, **empty) as (_, line):
        assert line.startswith("gt server: listening")
        assert os.path.exists(f"/tmp/gt-{os.geteuid()}/server-{port}.key")


def test_a_folder_that_cannot_be_created_is_reported(tmp_path):
    place = tmp_path / "file"
    place.write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "gt.server", "-p", free_port()],
        env={**os.environ, "TMPDIR": str(place), "XDG_RUNTIME_DIR": ""},
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.returncode == 1 and "folder for keys and sockets" in done.stderr, done.stderr
    assert "set XDG_RUNTIME_DIR or TMPDIR" in done.stderr


@pytest.mark.skipif(not has_v6(), reason="the machine has no IPv6")
def test_ipv6(tmp_path):
    port = free_port("::1")
    with server("-H", "::1", "-p", port) as (process, line):
        assert line.startswith(f"gt server: listening at [::1]:{port}"), line
        workers = [
            subprocess.Popen(
                [sys.executable, "-m", "gt.worker", "--host", "::1", "-p", port, "--id", name],
                stdout=subprocess.PIPE,
                text=True,
            )
            for name in "ab"
        ]
        try:
            for worker in workers:
                assert worker.stdout.readline().startswith("gt worker")
            with gt.Session(f"[::1]:{port}"):
                x = gt.ones(1000, 8)
                with gt.signal.context("two workers"):
                    y = x * 2
                assert (y @ y.T).sum().item() == 1000 * 1000 * 8 * 4
        finally:
            for worker in workers:
                worker.terminate()
                worker.communicate(timeout=20)
    assert "[::1]:9000" in run_program("network/connect", "::1:9000").stdout


@linux_only
def test_a_removed_state_folder_is_reported_and_a_stopped_server_is_not(tmp_path):
    state, port, errors = tmp_path / "state", free_port(), tmp_path / "errors"
    processes = []

    def start(*command: str, **pipes) -> subprocess.Popen:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **pipes)
        processes.append(process)
        assert process.stdout.readline()
        return process

    try:
        with errors.open("w") as stderr:
            options = ("-p", port, "--state", str(state))
            server = start(sys.executable, "-m", "gt.server", *options, stderr=stderr)
        start(sys.executable, "-m", "gt.worker", "--host", "localhost", "-p", port)
        start(*program_command("network/endless", f"localhost:{port}"))
        server.send_signal(signal.SIGSTOP)
        time.sleep(12)
        server.send_signal(signal.SIGCONT)
        time.sleep(2)
        assert "cannot write" not in errors.read_text()
        shutil.rmtree(state)
        until = time.monotonic() + 20
        while f"cannot write its state ('{state}' was removed" not in errors.read_text():
            assert time.monotonic() < until, errors.read_text()
            time.sleep(0.1)
    finally:
        for process in reversed(processes):
            process.terminate()
            process.communicate(timeout=20)
