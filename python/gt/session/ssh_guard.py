"""A program that runs ssh until its standard input ends, and then removes a folder.

It is run as a script, without the package: `python -I -S ssh_guard.py FOLDER [COMMAND...]`. The
program that starts it holds the other end of its standard input: so ssh ends with that program,
however that ends. Ctrl-C in their terminal reaches neither, but ssh may ask there for a password.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading

#: Ends ssh, and leaves the folder.
KEEP = b"k"


def main(folder: str, command: list[str]) -> None:
    """Run the command, if there is one; end with its status."""
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    child: subprocess.Popen[bytes] | None = None
    if command:
        # Its input does not end before it is killed: ssh would take that as the end of a session.
        with open(os.path.join(folder, "ssh.log"), "wb") as log:
            child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=log
            )
        threading.Thread(target=_end_with, args=(child,), daemon=True).start()
    is_kept = os.read(0, 1) == KEEP
    if not is_kept:
        shutil.rmtree(folder, ignore_errors=True)
    if child is not None:
        child.terminate()
        try:
            child.wait(2)
        except subprocess.TimeoutExpired:
            child.kill()


def _end_with(child: "subprocess.Popen[bytes]") -> None:
    status = child.wait()
    os._exit(status if 0 <= status <= 255 else 255)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
