"""`gt.status()`, and what a long wait says of itself."""

import os
import pty
import re
import select
import subprocess
import sys
import time

import gt
from processes import cluster, embedded_only, one_engine_only, run_python

pytestmark = [embedded_only, one_engine_only]


def test_status_reads_well():
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


#: Waits for a value that does not come.
WAITING = """
import gt, sys
gt.connect(sys.argv[1])
gt.ones(3).sum().item()
"""


#: One operation of many seconds, in this process.
LONG = """
import gt, threading, time
x = gt.randn(4000, 4000)
y = x
for _ in range(50):
    y = x @ y
threading.Thread(target=y.sum().item, daemon=True).start()
time.sleep(0.5)
begin = time.monotonic()
status = gt.status()
print("in time" if time.monotonic() - begin < 2 else "late", status.workers[0]["queued"] > 0)
y.sum().item()
"""


def test_a_long_wait_says_what_for_on_a_terminal():
    with cluster(0) as (address, _):
        said = on_a_terminal(WAITING, address, until="hint: python -m gt.worker")
        assert re.search(r"gt: waiting for [2-4] s: no worker is connected", said), said
    with cluster(1) as (address, processes):
        processes[1].send_signal(19)  # It stands still.
        try:
            said = on_a_terminal(WAITING, address, until="instructions to run")
        finally:
            processes[1].send_signal(18)
        assert re.search(r"gt: waiting for [2-4] s: a value of w0, which has \d+", said), said


def test_a_long_wait_in_this_process_is_told_too():
    said = on_a_terminal(LONG, until="instructions to run")
    assert "in time True" in said, said
    assert re.search(r"gt: waiting for [2-4] s: a value of auto_worker_0, which has \d+", said), (
        said
    )


def test_a_long_wait_says_nothing_elsewhere():
    with cluster(0, "--worker-wait", "3") as (address, _):
        done = run_python(WAITING, address)
        assert done.returncode == 1 and "waiting for" not in done.stderr, done.stderr


def on_a_terminal(code: str, *args: str, until: str, seconds: float = 20) -> str:
    """Run code on a terminal until it says something; give all it has said."""

    terminal, inside = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code, *args], stdin=inside, stdout=inside, stderr=inside
    )
    os.close(inside)
    said = ""
    try:
        limit = time.monotonic() + seconds
        while until not in said and time.monotonic() < limit:
            if select.select([terminal], [], [], 0.1)[0]:
                said += os.read(terminal, 4096).decode()
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    return said
