"""`gt.status()`, and the message of a long wait."""

import os
import pty
import re
import select
import signal
import subprocess
import time

import gt
from processes import cluster, embedded_only, one_engine_only, program_command, run_program

pytestmark = [embedded_only, one_engine_only]


def test_status_as_data_and_as_text():
    x = gt.ones(100, 100)
    (x + 1).sum().item()
    status = gt.status()
    (worker, *_) = status.workers
    assert worker["engine"] and worker["tensors"] >= 1
    assert sum(worker["bytes"] for worker in status.workers) >= 40_000
    assert any(session["instructions"] > 0 for session in status.sessions)
    text = repr(status)
    assert text.startswith("this process") and "waits for" in text
    assert worker["name"] in text and worker["name"] in status._repr_html_()
    assert "<table>" in status._repr_html_()


def test_a_long_wait_is_explained_on_a_terminal():
    with cluster(0) as (address, _):
        text = on_a_terminal("one_value", address, until="`gt worker --address")
        assert re.search(r"gt: waiting for [2-4] s: no worker is connected", text), text
    with cluster(1) as (address, processes):
        processes[1].send_signal(signal.SIGSTOP)
        try:
            text = on_a_terminal("one_value", address, until="instructions to run")
        finally:
            processes[1].send_signal(signal.SIGCONT)
        assert re.search(
            r"gt: waiting for [2-4] s: a value of w0 \(sum\b.*\), which has \d+", text
        ), text


def test_a_long_wait_for_an_embedded_session_is_explained():
    text = on_a_terminal("long_operation", until="instructions to run")
    assert "in time True" in text, text
    of = r"sum at long_operation\.py:\d+"
    wanted = rf"gt: waiting for [2-4] s: a value of auto_worker_0 \({of}\), which has \d+"
    assert re.search(wanted, text), text


def test_a_long_wait_is_silent_without_a_terminal():
    with cluster(0, "--worker-wait", "3") as (address, _):
        done = run_program("status/one_value", address)
        assert done.returncode == 1 and "waiting for" not in done.stderr, done.stderr


def on_a_terminal(name: str, *args: str, until: str, seconds: float = 20) -> str:
    """Run a program on a terminal until it prints a text; return its output."""
    terminal, inside = pty.openpty()
    command = program_command(f"status/{name}", *args)
    process = subprocess.Popen(command, stdin=inside, stdout=inside, stderr=inside)
    os.close(inside)
    text = ""
    try:
        limit = time.monotonic() + seconds
        while until not in text and time.monotonic() < limit:
            if select.select([terminal], [], [], 0.1)[0]:
                text += os.read(terminal, 4096).decode()
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    return text
