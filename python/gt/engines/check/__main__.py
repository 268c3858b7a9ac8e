"""`python -m gt.engines.check`: say what of an engine is missing, wrong and slow."""

import argparse
import sys
from pathlib import Path

from gt.engines.check import check, tasks
from gt.engines.check.cases import cases_of
from gt.engines.check.samples import OPERATIONS


def main(argv: list[str] | None = None) -> int:
    """Check an engine; give 0 if nothing is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m gt.engines.check",
        description="Say what of an engine is missing, wrong and slow.",
    )
    parser.add_argument("engine", nargs="?", help="its name, or module:Class for one of your own")
    parser.add_argument("--only", metavar="NAMES", help="what to check, with commas: add,matmul")
    parser.add_argument("--device", type=int, default=0, help="the GPU's number (default 0)")
    parser.add_argument(
        "--samples", type=int, metavar="N", help="try at most N cases of each operation"
    )
    parser.add_argument("--seed", type=int, default=0, help="which N these are (default 0)")
    parser.add_argument(
        "--limit", type=float, default=10, help="seconds that one call may take (default 10)"
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the report there, too")
    parser.add_argument("--list", action="store_true", help="list what is checked, and stop")
    args = parser.parse_args(argv)
    if args.list:
        for name in tasks.names():
            print(f"{name:34}{len(cases_of(name)):6}" if name in OPERATIONS else name)
        return 0
    if args.engine is None:
        parser.error("the engine's name is missing")
    try:
        report = check(
            args.engine,
            only=args.only.split(",") if args.only else None,
            device=args.device,
            samples=args.samples,
            seed=args.seed,
            limit=args.limit,
        )
    except ValueError as error:
        parser.error(str(error))
    if args.json:
        args.json.write_text(report.to_json() + "\n")
    print(report)
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
