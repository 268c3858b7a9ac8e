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


class Tampering(NumPyEngine):
    """Compiles everything, with a mistake: `spoil` changes the outputs, `values` are the inputs."""

    def compile(self, plan):
        """Give what spoils the outputs."""
        last: list = []

        def code(values):
            given = list(values)
            outputs = [np.copy(output) for output in self.run(plan, values)]
            self.spoil(outputs, given, last)
            last[:] = outputs
            return outputs

        return code


class Tail(Tampering):
    """Computes the last element otherwise."""

    name = "tail"

    def spoil(self, outputs, given, last):
        """Change the last element."""
        for output in outputs:
            if output.dtype == np.float32:
                output.reshape(-1)[-1:] *= np.float32(1.001)


class Stale(Tampering):
    """Gives the values of the run before."""

    name = "stale"

    def spoil(self, outputs, given, last):
        """Put the last values in."""
        for output, before in zip(outputs, last, strict=bool(last)):
            output[...] = before


class Overwriting(Tampering):
    """Writes to its inputs."""

    name = "overwriting"

    def spoil(self, outputs, given, last):
        """Negate the first tensor."""
        tensor = next(value for value in given if isinstance(value, np.ndarray) and value.ndim)
        tensor.setflags(write=True)
        np.negative(tensor, out=tensor)
