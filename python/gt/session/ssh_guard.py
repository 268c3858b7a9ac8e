"""A program that runs ssh until its standard input ends.

It is run as a script, without the package: `python -I -S ssh_guard.py OUTPUT ERRORS COMMAND...`.
The program that starts it holds the other end of its standard input: so ssh ends with that program,
however that ends. It writes ssh's exit status to its output. Ctrl-C in their terminal reaches
neither, but ssh may ask there for a password.
"""

import os
import signal
import subprocess
import sys
import threading


def main(output: str, errors: str, command: list[str]) -> None:
    """Run the command until the input ends, with files for its output and errors."""
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    # Its input does not end before it is killed: ssh would take that as the end of a session.
    with open(output, "wb") as out, open(errors, "wb") as log:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=log)
    threading.Thread(target=_report, args=(child,), daemon=True).start()
    os.read(0, 1)
    child.terminate()
    try:
        child.wait(2)
    except subprocess.TimeoutExpired:
        child.kill()


def _report(child: "subprocess.Popen[bytes]") -> None:
    os.write(1, str(child.wait()).encode())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
