"""The command-line options of the web page, for `gt web` and `gt server --web`."""

import argparse
from typing import Any


def add_page_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that :func:`page_options` reads, beside the page's address."""
    parser.add_argument(
        "--web-name",
        action="append",
        default=[],
        metavar="HOST",
        help="a name under which a reverse proxy serves the page; may be repeated",
    )
    parser.add_argument(
        "--web-token-file",
        metavar="FILE",
        help="a file with the token of the page (default: a new one at each start, in its link)",
    )
    parser.add_argument(
        "--insecure-web",
        action="store_true",
        help="allow an address that others on the network reach, without encryption",
    )


def page_options(args: argparse.Namespace, listen: str) -> dict[str, Any]:
    """Return the options of a page at an address, as `_gt` takes them."""
    return {
        "listen": listen,
        "names": args.web_name,
        "allow_network": args.insecure_web,
        "token_file": args.web_token_file,
    }
