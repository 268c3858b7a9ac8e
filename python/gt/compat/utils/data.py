"""`gt.data` under its name in PyTorch: the same module."""

import sys

from gt import data
from gt.data import *  # noqa: F403

sys.modules[__name__] = data
