"""Run `gt top` on this process before and after a fork, and on the child; print the exit codes."""

import os
import subprocess
import sys

import gt


def watch():
    """Return the exit code of `gt top` for this process."""
    command = [sys.executable, "-m", "gt", "top", "--once", "--pid", str(os.getpid())]
    return subprocess.run(command, capture_output=True, text=True).returncode


x = gt.randn(300, 300)
(x @ x).sum().item()
codes = [watch()]
child = os.fork()
if child == 0:
    (x @ x).sum().item()
    os._exit(watch())
codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
codes.append(watch())
print(codes)
