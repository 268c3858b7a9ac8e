"""`gt demo`: train on handwritten digits in this process, then on a server with workers."""

import argparse
import contextlib
import json
import os
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import gt
from gt._processes import at_least
from gt.demo.cluster import cluster
from gt.demo.curve import draw
from gt.demo.limit import DemoError, clean_end, limit
from gt.demo.screen import Screen
from gt.demo.train import Result, train

LEAST_ACCURACY = 0.97
LARGEST_DIFFERENCE = 1e-6
#: Time limits: for the server's answer, and for training, once and in addition for each epoch.
CONNECTION_SECONDS = 30
TRAINING_SECONDS = 60
EPOCH_SECONDS = 2


def main(argv: list[str] | None = None) -> int:
    """Run the demo; return the exit status."""
    args = _arguments(argv)
    screen = Screen(sys.stdout)
    try:
        with clean_end():
            return _run(args, screen)
    except (DemoError, gt.WorkerError, ConnectionError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            # The reader closed the pipe. Python's flush at exit would report an error.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 128 + signal.SIGPIPE
        screen.clear_bar()
        print(f"gt demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        with contextlib.suppress(OSError):
            screen.clear_bar()
            screen.say("stopped", indent=0)
        return 128 + signal.SIGINT


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="gt demo",
        description="Train a small network on handwritten digits, in this process and then on a "
        "server with workers, which the demo starts and stops. Exit status 0: the accuracy is 97 % "
        "or more, and both loss curves are the same.",
    )
    parser.add_argument(
        "--epochs", type=at_least(1), default=30, metavar="N", help="epochs to train (default 30)"
    )
    parser.add_argument(
        "--workers",
        type=at_least(1),
        default=2,
        metavar="N",
        help="workers of the server (default 2)",
    )
    parser.add_argument("--no-server", action="store_true", help="train only in this process")
    parser.add_argument(
        "--save", type=Path, metavar="FILE", help="save accuracies and losses as JSON"
    )
    args = parser.parse_args(argv)
    if args.save and not args.save.absolute().parent.is_dir():
        parser.error(f"--save: there is no folder {args.save.absolute().parent}")
    return args


def _run(args: argparse.Namespace, screen: Screen) -> int:
    began = time.monotonic()
    screen.say(f"GT {gt.__version__} learns to read handwritten digits.", indent=0)

    screen.heading("1. In this process")
    results = {"in this process": _embedded(args, screen)}
    screen.say("GT ran a dispatcher and a worker inside this process, without a server.")

    if not args.no_server:
        screen.heading(f"2. On a server with {_counted(args.workers)}")
        results["on the server"] = _on_server(args, screen)
        screen.say(
            "The same program ran in another process; only the session differs. A session uses one "
            "worker, and signals spread it over several."
        )

    screen.heading("The training loss")
    curves = {name: result.losses for name, result in results.items()}
    for line in draw(curves, width=screen.width - 4, characters=screen.characters):
        screen.write(f"   {line}")
    screen.write()
    problems = _check(results, screen)
    if args.save:
        saved = {name: result._asdict() for name, result in results.items()}
        args.save.write_text(json.dumps(saved, indent=2) + "\n")
        screen.say(f"Saved as {args.save}.")
    for problem in problems:
        print(f"gt demo: {problem}", file=sys.stderr)
    if not problems:
        _next_steps(screen)
    screen.write()
    screen.say(f"{time.monotonic() - began:.1f} s in all", indent=0)
    return 1 if problems else 0


def _embedded(args: argparse.Namespace, screen: Screen) -> Result:
    with gt.Session(workers=1):
        return _train(args, screen, "the worker in this process")


def _on_server(args: argparse.Namespace, screen: Screen) -> Result:
    began = time.monotonic()
    with cluster(args.workers) as address:
        screen.say(f"{address} is ready after {time.monotonic() - began:.1f} s.")
        with limit(CONNECTION_SECONDS, f"the server at {address} to answer"):
            session = gt.Session(address)
        with session:
            return _train(args, screen, f"the server at {address}")


def _train(args: argparse.Namespace, screen: Screen, place: str) -> Result:
    began = time.monotonic()
    seconds = TRAINING_SECONDS + EPOCH_SECONDS * args.epochs
    with limit(seconds, f"{place} to train {args.epochs} epochs"):
        result = train(args.epochs, _reporter(args.epochs, screen))
    screen.clear_bar()
    screen.say(
        f"{_counted(args.epochs, 'epoch')} in {time.monotonic() - began:.1f} s, "
        f"accuracy on the test set {result.accuracy:.1%}"
    )
    return result


def _reporter(epochs: int, screen: Screen) -> Callable[[int, float], None]:
    screen.bar(0, epochs, "epochs")
    return lambda epoch, loss: screen.bar(epoch, epochs, f"loss {loss:.4f}")


def _check(results: dict[str, Result], screen: Screen) -> list[str]:
    """Return what is wrong with the results: low accuracy, or loss curves that differ."""
    problems = [
        f"the accuracy {place} is {result.accuracy:.1%}, expected {LEAST_ACCURACY:.0%} or more"
        for place, result in results.items()
        if not result.accuracy >= LEAST_ACCURACY
    ]
    if len(results) == 2:
        here, there = (result.losses for result in results.values())
        # A NaN makes the maximum NaN, which is not below the limit.
        difference = float(np.abs(np.subtract(here, there)).max())
        if difference <= LARGEST_DIFFERENCE:
            agree = f"agree to {difference:.0e}" if difference else "are the same to the last bit"
            screen.say(f"The numbers do not depend on where a program runs: both curves {agree}.")
        else:
            problems.append(
                f"the loss curves differ by {difference:.1e}, expected {LARGEST_DIFFERENCE:.0e} "
                "at most"
            )
    return problems


def _next_steps(screen: Screen) -> None:
    program = _short(Path(__file__).with_name("train.py"))
    command = "gt" if shutil.which("gt") else f"{_short(Path(sys.executable))} -m gt"
    screen.heading("What to try next")
    screen.table(
        [
            (f"less {program}", "read the program that ran"),
            (f"{command} server", "start a server"),
            (f"{command} worker", "start a worker, in another terminal"),
            ('gt.connect("localhost:9000")', "run a program of yours there"),
            (f"{command} top", "watch all of it"),
        ]
    )


def _short(path: Path) -> str:
    """Return a path quoted for a shell, relative if it is below the current folder."""
    with contextlib.suppress(OSError, ValueError):
        path = path.relative_to(Path.cwd())
    return shlex.quote(str(path))


def _counted(number: int, what: str = "worker") -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


if __name__ == "__main__":
    sys.exit(main())
