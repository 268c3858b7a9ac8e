"""What the programs `gt server` and `gt worker` share."""

import argparse
import os
import signal


class Stopped(KeyboardInterrupt):
    """A signal asks for the end."""


#: What a signal that asks for the end raises in this process. In `gt server` and `gt worker` it is
#: `Stopped`: there an engine's own KeyboardInterrupt is an error like others.
interrupt: type[KeyboardInterrupt] = KeyboardInterrupt


def stop_at_signals() -> None:
    """Raise `Stopped` at Ctrl-C, and at a SIGTERM, for an end as polite; at the first one only."""
    global interrupt
    interrupt = Stopped

    def stop(number: int, _: object) -> None:
        if number == signal.SIGTERM:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Stopped

    signal.signal(signal.SIGTERM, stop)
    # Who was started in the background ignores Ctrl-C.
    takes_interrupts = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if takes_interrupts:
        signal.signal(signal.SIGINT, stop)

    # A fork, as of an engine's pool of processes, ends at signals as any other process. One that
    # comes before it can is held back until then.
    def reset() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if takes_interrupts:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        mask(signal.SIG_UNBLOCK)

    def mask(how: int) -> None:
        signal.pthread_sigmask(how, {signal.SIGTERM, signal.SIGINT})

    os.register_at_fork(
        before=lambda: mask(signal.SIG_BLOCK),
        after_in_parent=lambda: mask(signal.SIG_UNBLOCK),
        after_in_child=reset,
    )


def at_least(least: int):
    """Give a type of whole numbers for argparse, none below `least`."""

    def number(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is given, expected {least} or more")
        return value

    number.__name__ = "number"
    return number


def size(text: str) -> int:
    """Give the bytes that a text such as `16GB` says, for argparse."""
    from gt import _gt

    try:
        return _gt.parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def join_address(host: str, port: int) -> str:
    """Return the address of a host and port; a number of IP version 6 stands in brackets."""
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"
