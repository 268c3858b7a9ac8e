"""The reason of a failure in one line, and the time limit of an entry."""

import contextlib
import re
import signal

from compare import Different
from counterpart import Missing

_LENGTH = 240
_ABSENT = (
    (re.compile(r"module '(gt[\w.]*)' has no attribute '(\w+)'"), r"\1.\2 is missing"),
    (re.compile(r".*'gt\.Tensor'.* has no attribute '(\w+)'"), r"method missing: Tensor.\1"),
)


class Slow(BaseException):
    """An entry exceeds its time limit. Not an Exception, so that no code of an entry catches it."""


@contextlib.contextmanager
def said(what: str):
    """Prefix the reason of an error in the block with `what`."""
    try:
        yield
    except Exception as error:
        raise Different(f"{what}: {reason(error)}") from error


@contextlib.contextmanager
def limit(seconds: int):
    """Raise `Slow` inside the block after a number of seconds."""

    def over(number, frame):
        raise Slow(f"takes more than {seconds} s")

    previous = signal.signal(signal.SIGALRM, over)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def reason(error: BaseException) -> str:
    """Return an error in one line."""
    text = str(error).strip()
    line = text.splitlines()[0] if text else ""
    if isinstance(error, AttributeError):
        for pattern, absent in _ABSENT:
            if pattern.match(line):
                return pattern.sub(absent, line).split(". Did you mean")[0]
    if not isinstance(error, (Different, Missing, Slow)):
        line = f"{type(error).__name__}: {line}"
    return line[:_LENGTH]
