"""`python -m gt.engines.check`: report what is missing, wrong or slow in an engine."""

import argparse
import sys
from pathlib import Path

from gt.engines.check import check, tasks
from gt.engines.check.cases import cases_of
from gt.engines.check.samples import OPERATIONS


def main(argv: list[str] | None = None) -> int:
    """Check an engine; return 0 if nothing is wrong or missing, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m gt.engines.check",
        description="Report what is missing, wrong or slow in an engine.",
    )
    parser.add_argument("engine", nargs="?", help="its name, or module:Class for a custom engine")
    parser.add_argument(
        "--only", metavar="NAMES", help="what to check, separated by commas: add,matmul"
    )
    parser.add_argument("--device", type=int, default=0, help="the GPU's number (default 0)")
    parser.add_argument(
        "--samples", type=int, metavar="N", help="try at most N cases of each operation"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="the seed that chooses the cases (default 0)"
    )
    parser.add_argument(
        "--limit", type=float, default=10, help="seconds that one call may take (default 10)"
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the report as JSON")
    parser.add_argument("--list", action="store_true", help="list what is checked, and exit")
    args = parser.parse_args(argv)
    if args.list:
        for name in tasks.names():
            print(f"{name:34}{len(cases_of(name)):6}" if name in OPERATIONS else name)
        return 0
    if args.engine is None:
        parser.error("the name of the engine is missing")
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
