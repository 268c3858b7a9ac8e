"""The child process in which an engine is checked, so that a crash or hang stays isolated."""

import sys
from multiprocessing.connection import Connection
from typing import Any


def main(file: int) -> None:
    """Perform tasks received on a pipe (this file descriptor) until the pipe is closed."""
    pipe = Connection(file)
    name, device, path, options = pipe.recv()
    sys.path[:] = path
    from gt.engines import load
    from gt.engines.check.aside import Output, leave_copy
    from gt.engines.check.report import Finding
    from gt.engines.check.tasks import perform

    def send(kind: str, what: Any) -> None:
        leave_copy()
        pipe.send((kind, what))

    output = Output(sys.stdout.fileno())
    engine = None
    try:
        engine = load(name, device)
        send("loaded", None)
    except BaseException as error:
        send("finding", Finding("wrong", "load", f"{type(error).__name__}: {error}"))
    send("done", None)
    while engine is not None:
        try:
            task = pipe.recv()
        except EOFError:
            break
        perform(engine, task, options, send, output)
        send("done", None)


if __name__ == "__main__":
    main(int(sys.argv[1]))
