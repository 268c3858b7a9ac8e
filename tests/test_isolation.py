"""One user's trouble is only theirs: readers that stop, floods, and what ends in the middle."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import gt
import pytest
from processes import cluster, embedded_only, linux_only, run_gt

pytestmark = embedded_only

READS_NOTHING = """
import sys, threading, time
import gt
gt.connect(sys.argv[1])
xs = [gt.full((4_000_000,), float(i)) for i in range(50)]
print(xs[-1][0].item(), flush=True)
sys.stdin.readline()
seen = [None] * len(xs)
def read(place):
    seen[place] = xs[place].numpy()[-1]
threads = [threading.Thread(target=read, args=(place,)) for place in range(len(xs))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(seen == [float(i) for i in range(len(xs))], flush=True)
"""

FLOODS = """
import sys
import gt
gt.connect(sys.argv[1])
x = gt.ones(1000)
print("at work", flush=True)
while True:
    for _ in range(2000):
        y = x + 1
    y.sum().item()
"""


@contextmanager
def started(code: str, address: str):
    """Start a program; give it once it has printed its first line, and kill it in the end."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code, address], text=True, **pipes) as process:
        assert process.stdout.readline()
        yield process
        process.kill()


def memory(process: subprocess.Popen) -> int:
    """Give the bytes that a process has in memory, shared ones included."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def questions(count: int) -> float:
    """Give the seconds that a question takes, the median of many."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        assert (gt.ones(10) + 1).sum().item() == 20.0
        times.append(time.perf_counter() - start)
    return sorted(times)[count // 2]


@linux_only
def test_a_client_that_reads_nothing_holds_bounded_memory_and_slows_nobody():
    with cluster(1) as (address, (server, worker)), started(READS_NOTHING, address) as reader:
        before = [memory(process) for process in (server, worker)]
        reader.stdin.write("\n")
        reader.stdin.flush()
        time.sleep(0.05)
        reader.send_signal(signal.SIGSTOP)
        time.sleep(1)
        after = [memory(process) for process in (server, worker)]
        # It has asked for 800 MB; what is under way is a third of that at most.
        grown = [now - was for now, was in zip(after, before, strict=True)]
        assert max(grown) < 400_000_000, grown
        with gt.Session(address):
            assert questions(50) < 0.1
        reader.send_signal(signal.SIGCONT)
        assert reader.stdout.readline() == "True\n", "it has lost nothing"


def test_a_flood_of_small_instructions_lets_questions_through():
    with cluster(1) as (address, _):
        with ExitStack() as floods:
            for _ in range(3):
                floods.enter_context(started(FLOODS, address))
            with gt.Session(address):
                assert questions(50) < 1
        with gt.Session(address):
            assert questions(50) < 1


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGSTOP])
def test_a_client_that_goes_while_it_waits_for_memory_harms_nobody(tmp_path, kind):
    (tmp_path / "policy.yaml").write_text("default: {memory: 100MB}\n")
    code = (
        "import sys, gt\ngt.connect(sys.argv[1])\nprint('here', flush=True)\n"
        "xs = [gt.ones(20_000_000) for _ in range(50)]\nxs[-1].sum().item()\n"
    )
    with cluster(1, "--policy", str(tmp_path / "policy.yaml")) as (address, _):
        for _ in range(3):
            with started(code, address) as waits:
                time.sleep(0.2)
                os.kill(waits.pid, kind)
                with gt.Session(address):
                    assert questions(20) < 1
        until = time.monotonic() + 20
        with gt.Session(address):
            while len(gt.status().sessions) > 1:
                assert time.monotonic() < until, gt.status()
                time.sleep(0.1)
            assert gt.ones(20_000_000)[0].item() == 1.0, "all of the quota is there again"


def raw_link(address: str) -> socket.socket:
    """Give a connection that has done ZeroMQ's handshake, by hand, with a server without keys."""
    host, port = address.split(":")
    link = socket.create_connection((host, int(port)), timeout=5)
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0")
    link.sendall(greeting + bytes(64 - len(greeting)))
    ready = b"\x05READY\x0bSocket-Type" + (6).to_bytes(4, "big") + b"DEALER"
    link.sendall(b"\x04" + bytes([len(ready)]) + ready)
    return link


@linux_only
@pytest.mark.parametrize(("length", "flag"), [(32 << 20, 3), (500_000, 3), (500_000, 2)])
def test_what_is_sent_before_a_hello_is_not_held(length, flag):
    """Frames of messages that never end (flag 1), or many messages; each frame is long (flag 2)."""
    with cluster(1, "--insecure", worker_options=["--insecure"]) as (address, (server, _)):
        before = peak(server)
        server.send_signal(signal.SIGSTOP)
        links = [raw_link(address) for _ in range(3)]
        server.send_signal(signal.SIGCONT)
        block = bytes(length)
        for link in links:
            link.settimeout(2)
            with suppress(OSError):
                for _ in range(max(60, 400_000_000 // length)):
                    link.sendall(bytes([flag]) + length.to_bytes(8, "big") + block)
        assert peak(server) - before < 40_000_000
        with gt.Session(address, insecure=True):
            assert questions(20) < 0.1
        for link in links:
            link.close()


UPLOADS = """
import os, sys
import numpy, gt
# As another account's: nothing is shared with it.
os.seteuid(65534)
gt.connect(sys.argv[1])
values = numpy.arange(75_000_000, dtype="float32")
print("here", flush=True)
x = gt.tensor(values)
print(x[-1].item() == values[-1], x[12_345_678].item() == values[12_345_678], flush=True)
back = x.numpy()
print((back == values).all(), flush=True)
"""


@linux_only
@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_what_another_account_uploads_is_held_once(monkeypatch):
    monkeypatch.setenv("GT_KEY", run_gt("key").stdout.strip())
    with cluster(1) as (address, (server, worker)), started(UPLOADS, address) as uploads:
        before = [peak(process) for process in (server, worker)]
        assert uploads.stdout.readline() == "True True\n"
        grown = [peak(process) - was for process, was in zip((server, worker), before, strict=True)]
        # 300 MB, what is under way, and what the server keeps of its own.
        assert grown[0] < 420_000_000, grown
        assert uploads.stdout.readline() == "True\n"
        grown = [peak(process) - was for process, was in zip((server, worker), before, strict=True)]
        assert grown[0] < 800_000_000, grown


def peak(process: subprocess.Popen) -> int:
    """Give the most bytes that a process has had in memory."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024
