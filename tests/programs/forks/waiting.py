"""Wait for forked children with a time limit."""

import os
import signal
import time


def wait(child: int) -> int | str:
    """Return a child's exit code, or kill a child that hangs for 10 s and return "hangs"."""
    for _ in range(1000):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hangs"
