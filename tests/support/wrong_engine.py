"""The NumPy engine with one wrong function, as a bug of an engine would be."""

from typing import Any

import numpy as np
from gt.engines.numpy import NumPyEngine


def wrong_relu(x: np.ndarray) -> np.ndarray:
    """Return the maximum with 0, wrong where a value is above 1."""
    return np.where(x > 1, x + x.dtype.type(0.25), np.maximum(x, 0))


class WrongEngine(NumPyEngine):
    """Computes relu wrongly."""

    name = "wrong"
    lowerings: dict[str, Any] = {**NumPyEngine.lowerings, "relu": wrong_relu}
