"""Check that ten users of a shared model compute the same bits, whatever dies meanwhile.

Their model's publisher, then a worker, then the server are killed while all ten are at work.
"""

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from shared_users import USERS, User, running

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from processes import cluster
from training import start_server

#: The seconds that a part may take, after which it is said to hang.
LIMIT = 300


class Numbers(threading.Thread):
    """Reads what a user computes in a part."""

    def __init__(self, user: User, count: int):
        super().__init__(daemon=True)
        self.user, self.count, self.found = user, count, list[str]()
        user.say(f"numbers {count}")
        self.start()

    def run(self) -> None:
        for _ in range(self.count):
            line = self.user.process.stdout.readline()
            if not line:
                return
            self.found.append(line)


def alone(address: str, name: str, gigabytes: float, count: int) -> list[str]:
    """Return what a user computes when no other one is connected."""
    with running(address, [name], gigabytes) as (user,):
        return finished([Numbers(user, count)])[0]


def finished(parts: list[Numbers]) -> list[list[str]]:
    """Wait for the end of a part; return the numbers of each user."""
    until = time.monotonic() + LIMIT
    for part in parts:
        part.join(until - time.monotonic())
        done = len(part.found)
        assert done == part.count, f"{part.user.name}: {done} of {part.count} steps"
    return [part.found for part in parts]


def disturbed(users: list[User], count: int, disturb: Callable[[], object]) -> list[list[str]]:
    """Let all users compute, and disturb them in the midst of it; return their numbers."""
    parts = [Numbers(user, count) for user in users]
    until = time.monotonic() + LIMIT
    while max(len(part.found) for part in parts) < count // 3 and time.monotonic() < until:
        time.sleep(0.002)
    disturb()
    return finished(parts)


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a process of the cluster."""
    process.kill()
    process.communicate()


def check(gigabytes: float, count: int) -> list[str]:
    """Let ten users compute `count` steps in each part; return those whose bits are others."""
    with (
        tempfile.TemporaryDirectory() as state,
        cluster(2, "--state", state, worker_options=("--threads", "1")) as (address, processes),
    ):
        publisher = User(address, "publisher", gigabytes)

        def restart() -> None:
            kill(processes.pop(0))
            processes.insert(0, start_server(address, Path(state)))

        expected = [alone(address, name, gigabytes, 4 * count) for name in USERS]
        disturbances: dict[str, Callable[[], object]] = {
            "nothing is killed": lambda: None,
            "their model's publisher is killed": publisher.kill,
            "a worker is killed": lambda: kill(processes.pop(1)),
            "the server is killed and restarted": restart,
        }
        got: list[list[str]] = [[] for _ in USERS]
        with running(address, USERS, gigabytes, quiet=True) as users:
            for what, disturb in disturbances.items():
                start = time.monotonic()
                for numbers, more in zip(got, disturbed(users, count, disturb), strict=True):
                    numbers += more
                print(f"{what}: {count} steps of ten users in {time.monotonic() - start:.1f} s")
    rows = zip(USERS, got, expected, strict=True)
    return [name for name, numbers, alone in rows if numbers != alone]
