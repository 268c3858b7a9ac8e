"""Sessions are isolated: clients that stop reading, flood or die do not affect others."""

import os
import signal
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import gt
import pytest
from processes import cluster, embedded_only, linux_only, run_gt, start_program

pytestmark = embedded_only


@contextmanager
def started(name: str, address: str):
    """Yield a program that has printed its first line; kill it at the end."""
    with start_program(name, address) as process:
        assert process.stdout.readline()
        yield process
        process.kill()


def memory(process: subprocess.Popen) -> int:
    """Return the bytes that a process has in memory, shared memory included."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def latency(count: int) -> float:
    """Return the median time of a number of fetches, in seconds."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        assert (gt.ones(10) + 1).sum().item() == 20.0
        times.append(time.perf_counter() - start)
    return sorted(times)[count // 2]


@linux_only
def test_a_client_that_stops_reading_uses_bounded_memory_and_slows_no_other():
    with (
        cluster(1) as (address, (server, worker)),
        started("isolation/reads_nothing", address) as reader,
    ):
        before = [memory(process) for process in (server, worker)]
        reader.stdin.write("\n")
        reader.stdin.flush()
        time.sleep(0.05)
        reader.send_signal(signal.SIGSTOP)
        time.sleep(1)
        after = [memory(process) for process in (server, worker)]
        # The client has requested 800 MB; at most half of it may be buffered.
        grown = [now - was for now, was in zip(after, before, strict=True)]
        assert max(grown) < 400_000_000, grown
        with gt.Session(address):
            assert latency(50) < 0.1
        reader.send_signal(signal.SIGCONT)
        assert reader.stdout.readline() == "True\n", "no value is lost"


def test_a_flood_of_small_instructions_does_not_delay_fetches():
    with cluster(1) as (address, _):
        with ExitStack() as floods:
            for _ in range(3):
                floods.enter_context(started("isolation/floods", address))
            with gt.Session(address):
                assert latency(50) < 1
        with gt.Session(address):
            assert latency(50) < 1


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGSTOP])
def test_a_client_that_dies_while_it_waits_for_memory_harms_no_other(tmp_path, kind):
    (tmp_path / "policy.yaml").write_text("default: {memory: 100MB}\n")
    with cluster(1, "--policy", str(tmp_path / "policy.yaml")) as (address, _):
        for _ in range(3):
            with started("isolation/exceeds_quota", address) as waits:
                time.sleep(0.2)
                os.kill(waits.pid, kind)
                with gt.Session(address):
                    assert latency(20) < 1
        until = time.monotonic() + 20
        with gt.Session(address):
            while len(gt.status().sessions) > 1:
                assert time.monotonic() < until, gt.status()
                time.sleep(0.1)
            assert gt.ones(20_000_000)[0].item() == 1.0, "the whole quota is free again"


def raw_link(address: str) -> socket.socket:
    """Return a connection to a server without keys, after ZeroMQ's handshake."""
    host, port = address.split(":")
    link = socket.create_connection((host, int(port)), timeout=5)
    handshake = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0")
    link.sendall(handshake + bytes(64 - len(handshake)))
    ready = b"\x05READY\x0bSocket-Type" + (6).to_bytes(4, "big") + b"DEALER"
    link.sendall(b"\x04" + bytes([len(ready)]) + ready)
    return link


@linux_only
@pytest.mark.parametrize(("length", "flag"), [(32 << 20, 3), (500_000, 3), (500_000, 2)])
def test_data_before_a_hello_is_not_buffered(length, flag):
    """Frames of a message without end (flag 1), or many messages; each frame is long (flag 2)."""
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
            assert latency(20) < 0.1
        for link in links:
            link.close()


@linux_only
@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_an_upload_of_another_account_is_held_once(monkeypatch):
    monkeypatch.setenv("GT_KEY", run_gt("key").stdout.strip())
    with (
        cluster(1) as (address, (server, worker)),
        started("isolation/uploads", address) as uploads,
    ):
        before = [peak(process) for process in (server, worker)]
        assert uploads.stdout.readline() == "True True\n"
        grown = [peak(process) - was for process, was in zip((server, worker), before, strict=True)]
        # 300 MB, data in transit, and the memory of the server itself.
        assert grown[0] < 420_000_000, grown
        assert uploads.stdout.readline() == "True\n"
        grown = [peak(process) - was for process, was in zip((server, worker), before, strict=True)]
        assert grown[0] < 800_000_000, grown


def peak(process: subprocess.Popen) -> int:
    """Return the peak of the memory of a process, in bytes."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024
