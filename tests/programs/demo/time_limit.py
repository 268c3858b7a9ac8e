"""Exceed a time limit of the demo, then print the error; the timer must be restored."""

import select
import signal

from gt.demo.limit import DemoError, limit

before = signal.getsignal(signal.SIGALRM)
try:
    with limit(0.01, "the moon"):
        select.select([], [], [], 60)
except DemoError as error:
    print(error)
with limit(60, "nothing"):
    pass
assert signal.getsignal(signal.SIGALRM) == before
assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
