"""`gt top`: its view of workers and sessions."""

import json
import re
import shutil
import subprocess
import sys
import time

import pytest
from processes import (
    cluster,
    embedded_only,
    one_engine_only,
    program,
    program_command,
    run_gt,
)

pytestmark = [embedded_only, one_engine_only]


def test_top_and_trace_show_server_workers_and_session(tmp_path):
    with cluster(2) as (address, _):
        port = address.split(":")[1]
        with program(address):
            shown = run_gt("top", "--once", "--json", "--port", port)
            assert shown.returncode == 0, shown
            done = run_gt(
                "trace", "-s", "0.5", "--port", port, "--dir", str(tmp_path), "-o", "t.log"
            )
            assert (done.returncode, done.stderr) == (0, ""), done
        view = json.loads(shown.stdout)
        assert view["dispatcher"] == f"server {address}"
        assert sorted(worker["name"] for worker in view["workers"]) == ["w0", "w1"]
        (session,) = view["sessions"]
        assert session["rate"] > 0 and session["instructions"] > 0
        busy = [worker for worker in view["workers"] if worker["idle"] < 0.9]
        assert len(busy) == 1 and busy[0]["activities"]["matmul"] > 0.05
        text = (tmp_path / "t.log").read_text()
        assert "| ISSUE" in text and "| WORKER_RECV" in text
        assert "op=matmul" in text or "WorkerHotPath" in text
        spans = [
            (line.split(" | ")[2].strip(), float(begin), float(end))
            for line in text.splitlines()
            for begin, end in re.findall(r"begin=(\S+) end=(\S+)", line)
        ]
        # A worker runs an instruction some milliseconds after the dispatcher has planned it.
        first_plan = min(begin for event, begin, _ in spans if event == "PLAN")
        last_run = max(end for event, _, end in spans if event == "WORKER_RECV")
        assert 0.2 < last_run - first_plan < 5


def test_a_worker_with_long_instructions_is_not_idle():
    with cluster(1) as (address, _):
        command = program_command("watching/long_instructions", address)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "at work\n"
            time.sleep(0.5)
            try:
                for _ in range(3):
                    done = run_gt("top", "--once", "--json", "--port", address.split(":")[1])
                    (worker,) = json.loads(done.stdout)["workers"]
                    assert worker["idle"] < 0.5, worker
                    most = max(worker["activities"].items(), key=lambda of: of[1])
                    assert worker["untold"] > 0.3 or most[0] == "matmul", worker
            finally:
                process.kill()
                process.stdout.read()


def test_an_idle_server_is_shown_as_idle():
    with cluster(1) as (address, _):
        for _ in range(2):
            done = run_gt("top", "--once", "--port", address.split(":")[1])
            assert done.returncode == 0 and ", 0 instructions/s" in done.stdout, done
            assert "idle 100 %" in done.stdout, done


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_top_adapts_to_its_terminal_and_handles_keys(tmp_path):
    """In a real terminal, at several sizes."""
    socket = str(tmp_path / "tmux")

    def tmux(*command: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", socket, *command], capture_output=True, text=True, timeout=20
        )
        return done.stdout

    def shows(wanted, refused: str = "\0") -> str:
        """Wait until the screen shows one text and not the other; return the screen."""
        until = time.monotonic() + 20
        while time.monotonic() < until:
            screen = tmux("capture-pane", "-p", "-t", "top")
            if wanted in screen and refused not in screen:
                return screen
            time.sleep(0.1)
        pytest.fail(f"{wanted!r} is not shown:\n{screen}")

    with program() as process:
        command = f"{sys.executable} -m gt top --pid {process.pid}; echo left $?; sleep 60"
        tmux("new-session", "-d", "-s", "top", "-x", "110", "-y", "24", command)
        try:
            screen = shows("auto_worker_0")
            assert f"process {process.pid}" in screen and "engine" in screen
            shows("█████")
            tmux("resize-window", "-t", "top", "-x", "60", "-y", "10")
            shows("auto_worker_0", refused="engine")
            tmux("resize-window", "-t", "top", "-x", "30", "-y", "5")
            shows("the terminal is 30 x")
            tmux("resize-window", "-t", "top", "-x", "80", "-y", "24")
            shows("auto_worker_0")
            tmux("send-keys", "-t", "top", "p")
            shows("paused")
            tmux("send-keys", "-t", "top", "p", "s")
            shows("sort by rate", refused="paused")
            tmux("send-keys", "-t", "top", "u")
            shows("team", refused="rate/s")
            tmux("send-keys", "-t", "top", "u")
            shows("rate/s", refused="team")
            tmux("send-keys", "-t", "top", "/", "no match", "Enter")
            shows("filter 'no match'", refused="auto_worker_0")
            tmux("send-keys", "-t", "top", "q")
            shows("left 0")
        finally:
            tmux("kill-server")
