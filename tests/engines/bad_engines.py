"""Engines that do what no engine should."""

import os
import time

import numpy as np
from gt.engines.numpy import NumPyEngine


class Raising(NumPyEngine):
    """Knows no hyperbolic tangent."""

    name = "raising"
    lowerings = {**NumPyEngine.lowerings, "tanh": lambda x: missing(x)}  # noqa: F821


class Misshapen(NumPyEngine):
    """Forgets an element."""

    name = "misshapen"
    lowerings = {**NumPyEngine.lowerings, "tanh": lambda x: np.tanh(x)[:-1]}


class Hanging(NumPyEngine):
    """Never comes back."""

    name = "hanging"
    lowerings = {**NumPyEngine.lowerings, "tanh": lambda x: time.sleep(1000)}


class Dying(NumPyEngine):
    """Takes its process with it."""

    name = "dying"
    lowerings = {**NumPyEngine.lowerings, "tanh": lambda x: os._exit(9)}


class BadCompiler(NumPyEngine):
    """Compiles everything, wrongly."""

    name = "bad_compiler"

    def compile(self, plan):
        """Give what doubles the first output."""

        def code(values):
            outputs = self.run(plan, values)
            return [outputs[0] * 2, *outputs[1:]]

        return code


class NoCompiler(NumPyEngine):
    """Fails to compile anything."""

    name = "no_compiler"

    def compile(self, plan):
        """Fail."""
        raise RuntimeError("the compiler is not at home")


class SlowCompiler(NumPyEngine):
    """Takes for ever."""

    name = "slow_compiler"
    compiles_by_default = True

    def compile(self, plan):
        """Sleep."""
        time.sleep(1000)
