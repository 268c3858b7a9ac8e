"""Programs that a benchmark starts and talks to, line by line."""

import subprocess
from collections.abc import Sequence
from os import PathLike
from typing import IO, Any


class Printing(subprocess.Popen[str]):
    """A program whose output is read."""

    stdout: IO[str]

    def __init__(self, command: Sequence[str | PathLike[str]], **options: Any):
        super().__init__(command, stdout=subprocess.PIPE, text=True, **options)


class Asked(Printing):
    """A program that answers lines of input."""

    stdin: IO[str]

    def __init__(self, command: Sequence[str | PathLike[str]], **options: Any):
        super().__init__(command, stdin=subprocess.PIPE, **options)

    def say(self, line: str) -> None:
        """Write a line, whose answer is read later."""
        self.stdin.write(line + "\n")
        self.stdin.flush()

    def ask(self, line: str) -> str:
        """Write a line; return the line that answers it."""
        self.say(line)
        return self.stdout.readline()

    def stop(self, timeout: float) -> None:
        """Close the input, and wait for the program's end, at most `timeout` seconds."""
        self.stdin.close()
        self.wait(timeout=timeout)
