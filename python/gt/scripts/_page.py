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
        "--web-actions",
        action="store_true",
        help="let operators pause, resume, end and weigh sessions and drain workers by the page, "
        "with a second token (default: the page only shows)",
    )
    parser.add_argument(
        "--web-operator-token-file",
        metavar="FILE",
        help="a file with the second token (default: a new one at each start, in a second link)",
    )
    parser.add_argument(
        "--insecure-web",
        action="store_true",
        help="allow an address that others on the network reach, without encryption",
    )


def check_page_options(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """End the program with an error if an option needs another one."""
    if args.web_operator_token_file is not None and not args.web_actions:
        parser.error("--web-operator-token-file needs --web-actions")


def page_options(args: argparse.Namespace, listen: str) -> dict[str, Any]:
    """Return the options of a page at an address, as `_gt` takes them."""
    return {
        "listen": listen,
        "names": args.web_name,
        "allow_network": args.insecure_web,
        "token_file": args.web_token_file,
        "has_actions": args.web_actions,
        "operator_token_file": args.web_operator_token_file,
    }
