"""A server or worker process that ends when the demo that started it ends."""

import os
import signal
import threading
import time

#: The seconds that a child may take to exit cleanly after the demo has ended.
SECONDS = 10


def main(argv: list[str]) -> int:
    """Run `server` or `worker` with its options; return the exit status.

    Standard input is a pipe from the demo. It closes when the demo ends for any reason, including a
    signal that cannot be caught.
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
