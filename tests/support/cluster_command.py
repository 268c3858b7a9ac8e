"""`gt cluster` as a process, for tests."""

import os
import subprocess
import sys
import time

import pytest


def command(*words: str, limit: float = 120) -> tuple[int, str]:
    """Run `gt cluster`; return the exit status and what it prints."""
    line = [sys.executable, "-m", "gt", "cluster", *words]
    done = subprocess.run(line, capture_output=True, text=True, timeout=limit, check=False)
    return done.returncode, done.stdout + done.stderr


def until(condition, limit: float = 30.0, what: str = "it to come true") -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, f"waited {limit:g} s for {what}"
        time.sleep(0.05)


def runs(pid: int) -> bool:
    """Return whether a process runs; a zombie has ended."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def words_of(pid: int) -> str:
    """Return the command line of a process; empty if it has ended."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as line:
            return line.read().decode(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def processes_of(folder) -> list[int]:
    """Return the processes whose command line names a folder."""
    pids = [int(pid) for pid in filter(str.isdigit, os.listdir("/proc"))]
    return [of for of in pids if str(folder) in words_of(of) and runs(of) and of != os.getpid()]


@pytest.fixture
def clusters(tmp_path, monkeypatch):
    """A folder for the clusters of a test; those that it leaves are ended."""
    folder = tmp_path / "clusters"
    monkeypatch.setenv("GT_CLUSTERS", str(folder))
    yield folder
    for path in folder.glob("*/up.json"):
        command("down", path.parent.name)
