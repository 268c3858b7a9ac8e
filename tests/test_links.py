"""Lost connections: sessions resume, and the server frees those of clients that do not return."""

import json
import os
import random
import signal
import time
from contextlib import contextmanager

from chaos import campaign
from processes import (
    cluster,
    embedded_only,
    one_engine_only,
    run_gt,
    start_program,
    unsharded_only,
)
from proxy import Proxy
from training import TRAINING, Training, undisturbed

# These tests start their own servers.
pytestmark = [embedded_only, unsharded_only, one_engine_only]


@contextmanager
def behind_a_proxy(*options: str):
    """Yield the address of a proxy of a server, the proxy, and the address of the server."""
    with cluster(1, "--insecure", *options, worker_options=["--insecure"]) as (address, _):
        proxy = Proxy(int(address.rsplit(":", 1)[1]))
        try:
            yield f"127.0.0.1:{proxy.port}", proxy, address
        finally:
            proxy.close()


@contextmanager
def holding(address: str):
    """Yield the process of a program that holds a tensor."""
    program = start_program("recovery/one_tensor", address)
    try:
        assert program.stdout.readline() == "step 0\n", program.stderr.read()
        yield program
    finally:
        program.kill()
        program.communicate()


def sessions(address: str) -> int:
    host, port = address.rsplit(":", 1)
    done = run_gt("top", "--json", "--host", host, "--port", port, "--insecure")
    assert done.returncode == 0, done.stderr
    return len(json.loads(done.stdout)["sessions"])


def wait_until(condition, seconds: float) -> float:
    """Wait for a condition; return the seconds that it took."""
    begin = time.monotonic()
    while not condition():
        assert time.monotonic() - begin < seconds
        time.sleep(0.02)
    return time.monotonic() - begin


def test_a_program_resumes_after_every_lost_connection():
    steps = 600
    expected = undisturbed(TRAINING, 1, steps)
    chance = random.Random(0)
    with behind_a_proxy() as (address, proxy, _):
        training = Training(TRAINING, address, steps, "--insecure")
        training.wait_for(0)
        cuts = 0
        while training.process.poll() is None:
            time.sleep(0.05 + 0.3 * chance.random())
            proxy.cut()
            cuts += 1
        assert training.end() == expected
        assert cuts > 3
        assert training.errors == []


def test_a_program_resumes_after_a_silent_connection():
    with behind_a_proxy() as (address, proxy, _), holding(address) as program:
        proxy.hold()
        # Both ends have closed the connection, each after its own timeout.
        time.sleep(9)
        proxy.cut()
        proxy.let_go()
        out, errors = program.communicate("go\n", timeout=30)
        assert out == "sum 1000.0\n"
        assert "trying again for 600 s" in errors and "again after" in errors


def test_the_session_of_a_killed_client_is_freed_at_once_and_of_a_silent_one_after_its_grace():
    with behind_a_proxy("--grace", "3") as (through, proxy, address):
        with holding(through) as program:
            assert sessions(address) == 1
            program.kill()
            wait_until(lambda: sessions(address) == 0, 3)
        with holding(through) as program:
            program.send_signal(signal.SIGSTOP)
            proxy.cut()
            time.sleep(1)
            assert sessions(address) == 1, "it may reconnect"
            wait_until(lambda: sessions(address) == 0, 10)
            os.kill(program.pid, signal.SIGCONT)
            _, errors = program.communicate("go\n", timeout=30)
            assert "the session has ended" in errors


def test_a_session_ends_with_its_server():
    with cluster(1, "--insecure", worker_options=["--insecure"]) as (address, processes):
        with holding(address) as program:
            processes[0].kill()
            begin = time.monotonic()
            out, errors = program.communicate("go\n", timeout=30)
            assert time.monotonic() - begin < 6
            assert out == "" and "nothing listens at its address any more" in errors


def test_a_campaign_of_kills_stops_and_cuts():
    """A small part of `make chaos-processes`."""
    print(campaign(seed=int(os.environ.get("GT_TEST_SEED", "0")), moments=4))
