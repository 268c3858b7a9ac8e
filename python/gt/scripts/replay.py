"""`gt replay`: run a recorded stream again, and compare its values."""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from gt import _gt
from gt.scripts._target import between

#: Variables of the recorded program that change where and how instructions run.
KEPT = (
    "GT_AUTO_SHARD",
    "GT_AUTOCAST",
    "GT_CHECK_NAN",
    "GT_HOTPATH_THRESHOLD",
    "GT_KERNELS",
    "GT_TF32",
    "GT_WORKER_BATCH_SIZE",
)


def main(argv: list[str] | None = None) -> int:
    """Replay a recording; return the exit status: 1 if a value differs."""
    args = _parser().parse_args(argv)
    if args.backend:
        os.environ["GT_BACKEND"] = args.backend
    try:
        text, environment, _ = _gt.read_recording(args.file, args.until)
        print(text)
        for name, value in environment:
            if name in KEPT and name not in os.environ:
                os.environ[name] = value
        if args.script:
            _write_script(args.file, args.until, args.script)
            return 0
        found, different = _gt.replay_recording(args.file, **_options(args))
    except KeyboardInterrupt:
        return 130
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        print(f"gt replay: {error}", file=sys.stderr)
        return 2
    print(found)
    if different and not args.compare:
        print("  hint: --compare finds the first instruction that differs")
    return 1 if different else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gt replay",
        description="Run the stream of a recording again, on workers in this process or on a "
        "server, and compare the values that the program received with the recorded ones: bit for "
        "bit on the same engine, else within the tolerances of their dtypes. The exit status is 1 "
        "if one differs.",
    )
    parser.add_argument("file", type=Path, help="a recording, of `gt record`")
    parser.add_argument(
        "--workers", type=between(1, 4096), help="workers in this process (default: as recorded)"
    )
    parser.add_argument("--backend", help="their engine, as in GT_BACKEND")
    parser.add_argument("--server", metavar="HOST:PORT", help="run on the workers of a server")
    parser.add_argument("--key-file", type=Path, help="file with the server's key")
    parser.add_argument(
        "--insecure", action="store_true", help="the server uses neither keys nor encryption"
    )
    parser.add_argument(
        "--until",
        type=between(1, 1 << 62),
        metavar="SEQ",
        help="stop after the instruction of this number, and show its result",
    )
    parser.add_argument(
        "--compare",
        action="store_true",
        help="if a value differs, find the first instruction that differs from where it was "
        "recorded, or from one native worker",
    )
    parser.add_argument(
        "--script",
        type=Path,
        metavar="PROGRAM.py",
        help="write the stream as a program that uses gt and numpy alone, and run nothing; its "
        "data is in a .npz file beside it",
    )
    parser.add_argument("--exact", action="store_true", help="compare all bits on any engine")
    parser.add_argument("--rtol", type=float, help="relative tolerance (default: of the dtype)")
    parser.add_argument("--atol", type=float, help="absolute tolerance (default: of the dtype)")
    return parser


def _write_script(file: Path, until: int | None, to: Path) -> None:
    """Write a recording as a program, and its data beside it."""
    import numpy as np

    text, arrays = _gt.recording_script(file, until)
    to.write_text(text, encoding="utf-8")
    written = f"gt replay: wrote {to}"
    if arrays:
        beside = to.with_suffix(".npz")
        values: dict[str, Any] = {
            name: np.frombuffer(values, "uint8")
            if dtype == "bfloat16"
            else np.frombuffer(values, dtype).reshape(shape)
            for name, dtype, shape, values in arrays
        }
        np.savez(beside, **values)
        written += f" and {beside}"
    print(written)


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `_gt.replay_recording`."""
    return {
        "workers": args.workers,
        "until": args.until,
        "compare": args.compare,
        "exact": True if args.exact else None,
        "relative": args.rtol,
        "absolute": args.atol,
        "address": args.server,
        "key_file": args.key_file,
        "insecure": args.insecure,
    }


if __name__ == "__main__":
    sys.exit(main())
