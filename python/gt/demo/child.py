"""A server or worker that ends with the demo that started it."""

import os
import signal
import threading
import time

#: How long a child may take to end by itself once the demo is gone.
SECONDS = 10


def main(argv: list[str]) -> int:
    """Run `server` or `worker` with its options; return the exit status.

    The demo holds the other end of standard input. Whatever ends the demo closes it, also a signal
    that cannot be caught.
    """
    threading.Thread(target=_end_with_parent, daemon=True).start()
    program, *options = argv
    if program == "server":
        from gt.server.__main__ import main as run
    else:
        from gt.worker.__main__ import main as run
    return run(options)


def _end_with_parent() -> None:
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(SECONDS)
    os._exit(1)
