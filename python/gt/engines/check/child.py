"""The process that an engine is checked in: one that hangs or dies takes nothing else along."""

import sys
from multiprocessing.connection import Connection


def main(file: int) -> None:
    """Do the tasks that come by a pipe, whose end is this file, until it is closed."""
    pipe = Connection(file)
    name, device, path, options = pipe.recv()
    sys.path[:] = path
    from gt.engines import load
    from gt.engines.check.aside import Output
    from gt.engines.check.report import Finding
    from gt.engines.check.tasks import perform

    output = Output(sys.stdout.fileno())
    engine = None
    try:
        engine = load(name, device)
        pipe.send(("loaded", None))
    except BaseException as error:
        pipe.send(("finding", Finding("wrong", "load", f"{type(error).__name__}: {error}")))
    pipe.send(("done", None))
    while engine is not None:
        try:
            task = pipe.recv()
        except EOFError:
            break
        perform(engine, task, options, lambda kind, what: pipe.send((kind, what)), output)
        pipe.send(("done", None))


if __name__ == "__main__":
    main(int(sys.argv[1]))
