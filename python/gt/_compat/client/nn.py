"""An alias of `gt.nn`, with losses and activations as functions."""

from gt.nn import *  # noqa: F403
from gt.nn import __all__  # noqa: F401
