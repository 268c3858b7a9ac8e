"""`gt record`: run a program, and record its session's stream into a file."""

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path

#: The bytes that a recording begins with, around four of a version.
BEGINS = (b"GTJOURNL", b"GTSTREAM")


def main(argv: list[str] | None = None) -> int:
    """Run a program and record it; return the program's exit status."""
    parser = argparse.ArgumentParser(
        prog="gt record",
        usage="gt record [-o FILE] [--anonymous] -- PROGRAM [ARGUMENT ...]",
        description="Run a program, and record the stream of its session into a file, which "
        "`gt replay` runs again. PROGRAM is a command such as `python train.py`, or a file of "
        "Python.",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="recording.gts", help="default: recording.gts"
    )
    parser.add_argument(
        "--anonymous",
        action="store_true",
        help="record shapes and dtypes only: no data, values, lines, names or arguments",
    )
    parser.add_argument("program", nargs=argparse.REMAINDER, help="the program and its arguments")
    args = parser.parse_args(argv)
    program = args.program[1:] if args.program[:1] == ["--"] else args.program
    if not program:
        parser.error("no program is given\n  hint: gt record -o run.gts -- python train.py")
    path = Path(args.output).absolute()
    reason = _clear(path)
    if reason:
        print(f"gt record: {reason}", file=sys.stderr)
        return 2
    if program[0].endswith(".py"):
        program = [sys.executable, *program]
    environment = {**os.environ, "GT_RECORD": str(path)}
    if args.anonymous:
        environment["GT_RECORD_ANONYMOUS"] = "1"
    status = _run(program, environment)
    if status is None:
        print(
            f"gt record: there is no program '{program[0]}'\n"
            "  hint: gt record -o run.gts -- python train.py",
            file=sys.stderr,
        )
        return 127
    if not path.exists():
        print(
            "gt record: the program has opened no session, so nothing is recorded\n"
            "  hint: a session opens with the first tensor, in a process that imports gt",
            file=sys.stderr,
        )
        return status or 1
    print(f"gt record: {_summary(path)}", file=sys.stderr)
    return status


def _clear(path: Path) -> str | None:
    """Remove an earlier recording; return why the file cannot be written, if it cannot."""
    try:
        if path.exists():
            with path.open("rb") as file:
                first = file.read(20)
            if first and (first[:8], first[12:]) != BEGINS:
                return f"'{path}' exists, and is not a recording\n  hint: name another file with -o"
            path.unlink()
        path.touch(exist_ok=False)
        path.unlink()
    except OSError as error:
        hint = "name a file in a folder that you can write, with -o"
        return f"'{path}' cannot be written: {error.strerror}\n  hint: {hint}"
    return None


def _run(program: list[str], environment: dict[str, str]) -> int | None:
    """Return the exit status of a program, or None if it does not exist."""
    try:
        process = subprocess.Popen(program, env=environment)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    while True:
        try:
            status = process.wait()
        except KeyboardInterrupt:
            # The program has received it, too.
            continue
        return status if status >= 0 else 128 - status


def _summary(path: Path) -> str:
    """Return what a recording has, as text."""
    from gt import _gt

    try:
        text: str = _gt.read_recording(path)[0]
    except (OSError, ValueError) as error:
        text = str(error)
    return text


if __name__ == "__main__":
    sys.exit(main())
