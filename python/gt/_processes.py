"""What the programs `gt server` and `gt worker` share."""

import argparse
import signal


def stop_at_sigterm() -> None:
    """Make a SIGTERM a KeyboardInterrupt, for an end as polite as at Ctrl-C; the first one only."""

    def stop(*_) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)


def at_least(least: int):
    """Give a type of whole numbers for argparse, none below `least`."""

    def number(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is given, expected {least} or more")
        return value

    number.__name__ = "number"
    return number
