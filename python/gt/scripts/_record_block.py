"""The process that records a block for `gt.debug.timeline`.

It prints a line once events are recorded, and ends at the first line of its standard input, or when
that ends.
"""

import argparse
import os
import signal
import sys
import threading

from gt import _gt
from gt.scripts._target import add_options, read_options

#: How often it looks whether events are recorded, in seconds.
_EVERY = 0.02


def main() -> int:
    """Record a log; return the exit status."""
    parser = argparse.ArgumentParser(prog="gt trace")
    parser.add_argument("log")
    parser.add_argument("seconds", type=float)
    add_options(parser)
    args = parser.parse_args()
    target = read_options(parser, args)

    def announce(*_: object) -> None:
        # While it records, handlers of signals run after events were asked for.
        if os.path.exists(args.log):
            signal.setitimer(signal.ITIMER_REAL, 0)
            print("events are recorded", flush=True)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGALRM, announce)
    signal.setitimer(signal.ITIMER_REAL, _EVERY, _EVERY)
    threading.Thread(target=_end_at_input, daemon=True).start()
    try:
        _gt.trace(args.log, args.seconds, None, **target)
    except (ConnectionError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _end_at_input() -> None:
    """Have the recording end, as Ctrl-C does, at a line of standard input or at its end."""
    sys.stdin.buffer.readline()
    signal.raise_signal(signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main())
