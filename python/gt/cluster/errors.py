"""The error of clusters."""


class ClusterError(RuntimeError):
    """A cluster cannot be started, scaled or reached.

    The first line says what; the lines below it are the words of the scheduler, or of the program
    that failed.
    """

    __module__ = "gt.cluster"


def said(text: str, lines: int = 20) -> str:
    """Return the last lines of what a program said, indented, to follow a line of an error."""
    last = [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]
    return "".join(f"\n  {line}" for line in last)
