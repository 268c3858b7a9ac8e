"""Engines that tell tests what they are asked for."""

import os
import time
import weakref

import numpy as np
from gt.engines.numpy import NumPyEngine

#: The operations whose functions were asked for, once for each time.
ASKED: list[str] = []
#: How many plans were given to the compiler.
PLANS = 0
#: What was run, in order: single operations by name, and `compiled`.
RUNS: list[str] = []
_SEEN: list[weakref.ref] = []


class Tracked(np.ndarray):
    """An array that can be looked for after it is gone."""


def tracked(array: np.ndarray) -> np.ndarray:
    """Give an array that is counted for as long as it lives."""
    array = np.asarray(array).view(Tracked)
    _SEEN.append(weakref.ref(array))
    return array


def arrays() -> list[np.ndarray]:
    """Give the arrays that live."""
    return [array for array in (seen() for seen in _SEEN) if array is not None]


def live() -> int:
    """Count the arrays that live."""
    return len(arrays())


class Recording(NumPyEngine):
    """Notes what it is asked for, and what lives of what it gave."""

    name = "recording"

    def lowering(self, signature):
        """Note the operation."""
        ASKED.append(signature.operation)
        function = super().lowering(signature)
        return lambda *operands, **attributes: tracked(function(*operands, **attributes))

    def create(self, data, dtype, shape):
        """Give an array that is counted."""
        return tracked(super().create(data, dtype, shape))

    def compile(self, plan):
        """Note that a plan came."""
        global PLANS
        PLANS += 1


class Compiling(NumPyEngine):
    """Takes its time to compile, and notes which runs are of compiled code."""

    name = "compiling"

    def lowering(self, signature):
        """Give a function that notes its runs."""
        function = super().lowering(signature)

        def run(*operands, **attributes):
            RUNS.append(signature.operation)
            return function(*operands, **attributes)

        return run

    def compile(self, plan):
        """Give the plan's own run, after a while."""
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
