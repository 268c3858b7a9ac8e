"""Say in one line why an entry fails, and stop an entry that takes too long."""

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
    """An entry takes too long. Nothing that an entry calls catches it."""


@contextlib.contextmanager
def said(what: str):
    """Say in an error where it is."""
    try:
        yield
    except Exception as error:
        raise Different(f"{what}: {reason(error)}") from error


@contextlib.contextmanager
def limit(seconds: int):
    """Raise inside the block when the time is over."""

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
    """Give an error in one line."""
    text = str(error).strip()
    line = text.splitlines()[0] if text else ""
    if isinstance(error, AttributeError):
        for pattern, absent in _ABSENT:
            if pattern.match(line):
                return pattern.sub(absent, line).split(". Did you mean")[0]
    if not isinstance(error, (Different, Missing, Slow)):
        line = f"{type(error).__name__}: {line}"
    return line[:_LENGTH]
