"""One model, ten users: each works on a published model in a program of its own.

python examples/shared_model.py

A server and a worker are started. A program trains a small language model on a poem, publishes it,
and ends. Then ten programs read it by `gt.shared`, and work at the same time: some train adapters,
a soft prompt, a probe or a student, others generate, evaluate, attribute, steer or patch. The
weights are on the worker once. Each program then runs again, alone: its numbers are the same bits.

The kinds of work are in examples/users.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import gt

sys.path.append(str(Path(__file__).resolve().parent / "models"))
from text import train
from users import KINDS
from users.base import Work, make_model

USERS = ("ada", "bob", "cyd", "dan", "eve", "fay", "gus", "hal", "ida", "jim")
NAME = "poet"


class Result(NamedTuple):
    """What a user's program reports: its numbers, one for each step, and the seconds."""

    numbers: list[float]
    seconds: float


def publish(address: str, width: int, layers: int, training: int) -> None:
    """Train the model for some steps, and publish it."""
    gt.connect(address, name="publisher")
    gt.manual_seed(0)
    model = make_model(width, layers)
    losses = train(model, training)
    name = gt.publish(NAME, model, to="all", description="a model of a poem")
    gt.shared(name)
    size = sum(p.numel() for p in model.parameters())
    print(f"{name}: {size:,} numbers, trained to a loss of {losses[-1]:.2f}")


def work(address: str, user: str, width: int, layers: int, steps: int) -> None:
    """Read the model, wait for a line of input, and do the work of a user; print a `Result`."""
    place = USERS.index(user)
    kind = list(KINDS)[place]
    gt.connect(address, name=f"{user}: {kind}")
    model = make_model(width, layers)
    gt.shared(NAME, into=model)
    gt.manual_seed(place)
    print("ready", flush=True)
    sys.stdin.readline()
    start = time.perf_counter()
    values = KINDS[kind](model, Work(seed=place))
    numbers = [float(value.item()) for value in islice(values, steps)]
    print(json.dumps(Result(numbers, time.perf_counter() - start)))


def run(command: list[str], users: tuple[str, ...]) -> list[Result]:
    """Run the programs of users at the same time; return their results."""
    programs = [
        subprocess.Popen(
            [*command, "--user", user], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for user in users
    ]
    try:
        for program in programs:
            if program.stdout is None or program.stdout.readline() != "ready\n":
                raise RuntimeError("a user's program did not start")
        for program in programs:
            if program.stdin is not None:
                program.stdin.write("go\n")
                program.stdin.flush()
        return [Result(*json.loads(program.communicate()[0])) for program in programs]
    finally:
        for program in programs:
            program.kill()
            program.communicate()


@contextmanager
def cluster() -> Generator[str, None, None]:
    """Run a server with a worker; yield the address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    processes: list[subprocess.Popen[str]] = []
    try:
        for module in (("gt.server",), ("gt.worker", "--host", "localhost")):
            command = [sys.executable, "-m", *module, "-p", port]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            processes.append(process)
            # It prints a line when it is ready.
            if process.stdout is not None:
                process.stdout.readline()
        yield f"localhost:{port}"
    finally:
        for process in reversed(processes):
            process.terminate()
            process.communicate()


def main() -> int:
    """Run all users together, then each alone, and print a table; or run one of the programs."""
    parser = argparse.ArgumentParser(description="Ten users of one model.")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--training", type=int, default=200, help="steps of the publisher")
    parser.add_argument("--steps", type=int, default=200, help="steps of each user")
    parser.add_argument("--address", help="of a server: for one of the programs below")
    parser.add_argument("--publish", action="store_true", help="train the model and publish it")
    parser.add_argument("--user", choices=USERS, help="do the work of this user")
    given = parser.parse_args()
    if given.publish:
        publish(given.address, given.width, given.layers, given.training)
    elif given.user:
        work(given.address, given.user, given.width, given.layers, given.steps)
    else:
        with cluster() as address:
            command = [sys.executable, *sys.argv, "--address", address]
            subprocess.run([*command, "--publish"], check=True)
            together = run(command, USERS)
            alone = [run(command, (user,))[0] for user in USERS]
            with gt.Session(address):
                gt.unpublish(NAME)
            return report(together, alone)
    return 0


def report(together: list[Result], alone: list[Result]) -> int:
    """Print the table; return 1 if a user's numbers were others than alone."""
    print("user  kind             first     last  steps/s    alone  same as alone")
    status = 0
    for user, kind, beside, apart in zip(USERS, KINDS, together, alone, strict=True):
        rates = (len(beside.numbers) / result.seconds for result in (beside, apart))
        same = beside.numbers == apart.numbers
        status |= not same
        print(
            f"{user:5} {kind:13} {beside.numbers[0]:8.3f} {beside.numbers[-1]:8.3f}",
            *(f"{rate:8.0f}" for rate in rates),
            f" {'yes' if same else 'no'}",
        )
    return status


if __name__ == "__main__":
    sys.exit(main())
