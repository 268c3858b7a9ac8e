"""`gt.signal` under its name in early versions: the same module."""

import sys

from gt import signal
from gt.signal import *  # noqa: F403

sys.modules[__name__] = signal
