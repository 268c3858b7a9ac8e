"""Engines that record their calls, for tests."""

import os
import time
import weakref

import numpy as np
from gt.engines.numpy import NumPyEngine

#: The operation of each call of `lowering`.
ASKED: list[str] = []
#: The number of calls of `compile`.
PLANS = 0
#: The runs in order: names of single operations, and "compiled" for compiled code.
RUNS: list[str] = []
_SEEN: list[weakref.ref] = []


class Tracked(np.ndarray):
    """An array that supports weak references."""


def tracked(array: np.ndarray) -> np.ndarray:
    """Return an array that `live` counts during its lifetime."""
    array = np.asarray(array).view(Tracked)
    _SEEN.append(weakref.ref(array))
    return array


def arrays() -> list[np.ndarray]:
    """Return the live arrays."""
    return [array for array in (seen() for seen in _SEEN) if array is not None]


def live() -> int:
    """Return the number of live arrays."""
    return len(arrays())


class Recording(NumPyEngine):
    """Records lowered operations, and tracks the arrays that it returns."""

    name = "recording"

    def lowering(self, signature):
        """Record the operation."""
        ASKED.append(signature.operation)
        function = super().lowering(signature)
        return lambda *operands, **attributes: tracked(function(*operands, **attributes))

    def create(self, data, dtype, shape):
        """Return a tracked array."""
        return tracked(super().create(data, dtype, shape))

    def compile(self, plan):
        """Count the plan."""
        global PLANS
        PLANS += 1


class Compiling(NumPyEngine):
    """Compiles slowly, and records which runs use compiled code."""

    name = "compiling"

    def lowering(self, signature):
        """Return a function that records its runs."""
        function = super().lowering(signature)

        def run(*operands, **attributes):
            RUNS.append(signature.operation)
            return function(*operands, **attributes)

        return run

    def compile(self, plan):
        """Return a function that runs the plan, after a delay."""
        time.sleep(float(os.environ.get("COMPILE_SECONDS", "0")))
        stages = [
            (super(Compiling, self).lowering(plan.signature(step)), step) for step in plan.steps
        ]

        def code(values):
            RUNS.append("compiled")
            values = list(values)
            for function, step in stages:
                given = {name: value for name, value in step.attributes.items() if name != "dtype"}
                values.append(function(*[values[at] for at in step.operands], **given))
            return [values[output] for output in plan.outputs]

        return code
