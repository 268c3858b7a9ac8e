"""`gt visualize`: draw a log as a timeline."""

import argparse
import sys

from gt import _gt


def main(argv: list[str] | None = None) -> int:
    """Draw a log; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="gt visualize",
        description="Draw a log of GT_INSTRUCTION_LOG or `gt trace` as a timeline: a lane for each "
        "client, the dispatcher and each worker, and transfers between workers as arrows.",
    )
    parser.add_argument("log", help="the log")
    parser.add_argument(
        "-o", "--output", default="timeline.png", help="the picture (default timeline.png)"
    )
    parser.add_argument(
        "--format",
        choices=("png", "svg", "perfetto"),
        help="its format (default: by its name; .json is for https://ui.perfetto.dev)",
    )
    parser.add_argument("--dpi", type=float, default=150, help="pixels per inch (default 150)")
    parser.add_argument("--width", type=float, default=16, help="inches (default 16)")
    parser.add_argument("--height", type=float, default=10, help="inches (default 10)")
    args = parser.parse_args(argv)
    try:
        drawn = _gt.visualize(args.log, args.output, args.format, args.dpi, args.width, args.height)
    except (OSError, ValueError) as error:
        print(f"gt visualize: {error}", file=sys.stderr)
        return 1
    print(
        f"gt visualize: {drawn['events']:,} events on {drawn['lanes']} lanes, "
        f"{drawn['seconds']:.3f} s -> {args.output}"
    )
    if drawn["cut_off"]:
        print("gt visualize: the log's last line is incomplete and was skipped", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
