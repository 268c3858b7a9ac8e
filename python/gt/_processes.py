"""Signal handling and argument types of the programs `gt server` and `gt worker`."""

import argparse
import os
import select
import signal
import threading
import time
from collections.abc import Callable


class Stopped(KeyboardInterrupt):
    """Raised when a signal asks the process to stop."""


#: The exception that a signal to stop raises in this process. In `gt server` and `gt worker` it is
#: `Stopped`, so that a KeyboardInterrupt raised by an engine is an ordinary error.
interrupt: type[KeyboardInterrupt] = KeyboardInterrupt


class Departure:
    """Whether the first SIGTERM has the process leave in good order, and whether it has arrived."""

    #: Whether there is anything to do before the end.
    is_possible = False
    has_begun = False
    #: Whether a signal ends the process at once.
    is_signalled = False

    def begin(self) -> bool:
        """Note that it is to leave, if that is possible; return whether it is leaving."""
        if self.is_possible:
            self.is_possible, self.has_begun = False, True
        return self.has_begun


def stop_at_signals(departure: Departure | None = None) -> Callable[[], bool]:
    """Raise `Stopped` at Ctrl-C and at the first SIGTERM, so that both end the process cleanly.

    Args:
        departure: where the first SIGTERM is only noted, while that is possible.

    Returns:
        A function that returns whether a signal has arrived. A loop asks it, because the code that
        a signal interrupts may swallow the exception, as `__del__` and callbacks of libraries do.
    """
    global interrupt
    interrupt = Stopped
    has_arrived = False

    def stop(number: int, _: object) -> None:
        nonlocal has_arrived
        # The first one is the request that the line `drain` of its standard input may be, too.
        if number == signal.SIGTERM and departure is not None and not departure.is_signalled:
            departure.is_signalled = departure.begin()
            if departure.is_signalled:
                return
        has_arrived = True
        if number == signal.SIGTERM:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Stopped

    signal.signal(signal.SIGTERM, stop)
    # A process that a shell started in the background ignores SIGINT: leave it so.
    takes_interrupts = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if takes_interrupts:
        signal.signal(signal.SIGINT, stop)

    # A forked child, such as one of an engine's process pool, dies of these signals as any process
    # does. A signal that arrives during the fork is blocked until the handlers are reset.
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
    return lambda: has_arrived


#: How long a process may take to end when its standard input ends, in seconds.
_END_WITHIN = 4.0


def add_end_option(parser: argparse.ArgumentParser) -> None:
    """Add the options `--until-eof`, after which :func:`stop_at_eof` is called, and `--silence`."""
    parser.add_argument(
        "--until-eof",
        action="store_true",
        help="end when standard input does: with the program that holds its other end",
    )
    parser.add_argument(
        "--silence",
        type=float,
        metavar="SECONDS",
        help="with --until-eof: end, too, when nothing was written there for so long, as when the "
        "network is cut",
    )


#: The line of standard input that has a process leave in good order. A scheduler may send SIGTERM
#: to all processes of a job as well: that one and this line are one request.
DRAIN = "drain"


def stop_at_eof(
    departure: Departure | None = None,
    before: Callable[[], None] = lambda: None,
    command: Callable[[str], None] | None = None,
    silence: float | None = None,
) -> None:
    """End this process as SIGTERM does when its standard input ends, without a departure.

    Args:
        departure: the departure that a SIGTERM, or the line `drain`, begins.
        before: what is done first.
        command: called with each line of the input that is not empty, instead of a departure.
        silence: the seconds without input after which it counts as ended.
    """

    def leave(line: str) -> None:
        if line == DRAIN and (departure is None or not departure.begin()):
            os.kill(os.getpid(), signal.SIGTERM)

    def watch() -> None:
        rest = b""
        while select.select([0], [], [], silence)[0] and (read := os.read(0, 4096)):
            *lines, rest = (rest + read).split(b"\n")
            for line in filter(None, lines):
                (command or leave)(line.decode(errors="replace"))
        if departure is not None:
            departure.is_possible, departure.is_signalled = False, True
        before()
        # It may have been started with SIGTERM blocked, as the end of its input is what ends it.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_END_WITHIN)
        os._exit(1)

    threading.Thread(target=watch, name="gt-eof", daemon=True).start()


def named_key_file(given: str | None) -> str | None:
    """Return the path of a key file: that of `-` is in memory, with a line of standard input."""
    if given != "-":
        return given
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(0, 1)):
        line += byte
    # It is neither on a disk nor in the environment; children of this process may read it by name.
    file = os.memfd_create("gt-key")
    os.fchmod(file, 0o600)
    os.write(file, line)
    return f"/proc/{os.getpid()}/fd/{file}"


def at_least(least: int) -> Callable[[str], int]:
    """Return an argparse type for integers of at least `least`."""

    def number(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"got {value}, expected {least} or more")
        return value

    number.__name__ = "number"
    return number


def size(text: str) -> int:
    """Return the number of bytes in a text such as `16GB`, as an argparse type."""
    from gt import _gt

    try:
        return _gt.parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def join_address(host: str, port: int) -> str:
    """Return the address `HOST:PORT`, with an IPv6 host in brackets."""
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"
