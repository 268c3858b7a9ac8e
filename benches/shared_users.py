"""The programs of the benchmark of a shared model."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from programs import Asked

PROCESS = Path(__file__).parent / "processes" / "shared_model.py"

#: The users, by their kind of work.
USERS = (
    "lora",
    "steering",
    "probing",
    "distillation",
    "generation",
    "attribution",
    "soft prompt",
    "evaluation",
    "preference",
    "patching",
)


class User:
    """A program of benches/processes/shared_model.py, once it is ready."""

    def __init__(self, address: str, name: str, gigabytes: float, quiet: bool = False):
        command = [sys.executable, str(PROCESS), address, name, str(gigabytes)]
        self.process = Asked(command, stderr=subprocess.DEVNULL if quiet else None)
        self.name = name
        assert self.process.stdout.readline() == "ready\n", f"{name} did not start"

    def say(self, line: str) -> None:
        """Begin a round."""
        self.process.say(line)

    def answer(self) -> list[float]:
        """Wait for the end of the round; return the numbers in its answer."""
        return [float(word) for word in self.process.stdout.readline().split()]

    def ask(self, line: str) -> list[float]:
        """Run a round alone."""
        self.say(line)
        return self.answer()

    def kill(self) -> None:
        """End the process by SIGKILL."""
        self.process.kill()
        self.process.communicate()


@contextmanager
def running(
    address: str, names: Sequence[str], gigabytes: float, quiet: bool = False
) -> Iterator[list[User]]:
    """Run programs until the end of the block, and kill them."""
    with ExitStack() as stack:
        users = []
        for name in names:
            user = User(address, name, gigabytes, quiet)
            stack.callback(user.kill)
            users.append(user)
        yield users
