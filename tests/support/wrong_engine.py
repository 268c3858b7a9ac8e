"""The NumPy engine with one wrong result or function, as a bug of an engine would be."""

from typing import Any

import numpy as np
from gt.engines.engine import Function, Signature
from gt.engines.numpy import NumPyEngine


def wrong_relu(x: np.ndarray) -> np.ndarray:
    """Return the maximum with 0, wrong where a value is above 1."""
    return np.where(x > 1, x + x.dtype.type(0.25), np.maximum(x, 0))


class WrongEngine(NumPyEngine):
    """Computes relu wrongly."""

    name = "wrong"
    lowerings: dict[str, Any] = {**NumPyEngine.lowerings, "relu": wrong_relu}


class LateEngine(NumPyEngine):
    """Computes one relu of many wrongly."""

    name = "late"

    def lowering(self, signature: Signature) -> Function:
        """Return the function, of which the 200th call is wrong."""
        function = super().lowering(signature)
        if signature.operation != "relu":
            return function
        calls = 0

        def compute(x: np.ndarray) -> Any:
            nonlocal calls
            calls += 1
            result = function(x)
            return result + np.float32(0.5) if calls == 200 else result

        return compute
