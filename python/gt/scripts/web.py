"""`gt web`: serve a web page that shows the state of a dispatcher, live."""

import argparse
import sys

from gt import _gt
from gt._processes import stop_at_signals
from gt.scripts._page import add_page_options, check_page_options, page_options
from gt.scripts._target import add_options, read_options


def main(argv: list[str] | None = None) -> int:
    """Serve the page until it is stopped; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="gt web",
        description="Serve a web page that shows the state of a dispatcher, its workers and its "
        "sessions, live. Without HOST:PORT, --host, --port and --pid it is the only one on this "
        "machine.",
    )
    parser.add_argument(
        "--listen",
        default="8265",
        metavar="[HOST:]PORT",
        help="where the page is served (default 8265, of 127.0.0.1; 0 for any port that is free)",
    )
    add_page_options(parser)
    add_options(parser)
    args = parser.parse_args(argv)
    check_page_options(parser, args)
    target = read_options(parser, args)
    is_stopped = stop_at_signals()

    def ready(link: str, acting_link: str | None) -> None:
        print(f"gt web: {link}", flush=True)
        if acting_link is not None:
            print(f"  to act:  {acting_link}", flush=True)

    try:
        _gt.run_web(page_options(args, args.listen), ready, is_stopped, **target)
    except KeyboardInterrupt:
        return 130
    except (OSError, ValueError) as error:
        print(f"gt web: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
