"""Engines that do what no engine should."""

import itertools
import math
import multiprocessing
import os
import time
from functools import partial

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


class Fragile(NumPyEngine):
    """Takes its process with it at some numbers."""

    name = "fragile"
    lowerings = {
        **NumPyEngine.lowerings,
        "tanh": lambda x: os._exit(9) if 20 <= x.max() < 21 else np.tanh(x),
    }


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


def bad(name, **methods):
    """Make an engine that has other methods than NumPy's."""
    return type(name, (NumPyEngine,), {"name": name.lower(), **methods})


def odd(name, tanh):
    """Make an engine that has another hyperbolic tangent, whose result is taken as it is."""

    def lowering(self, signature):
        return tanh if signature.operation == "tanh" else NumPyEngine.lowering(self, signature)

    return bad(name, lowering=lowering)


def failing(error):
    """Give a method that raises."""

    def method(self, *given):
        raise error

    return method


def sorted_by(function):
    """Give the lowering of an engine that sorts in some way."""

    def lowering(self, signature):
        sorts = signature.operation == "sort"
        return function if sorts else NumPyEngine.lowering(self, signature)

    return lowering


def exiting(x):
    """End the program, as it thinks."""
    raise SystemExit(5)


def interrupted(x):
    """Say that somebody has pressed Ctrl-C."""
    raise KeyboardInterrupt


def printing(x):
    """Tell everybody."""
    print("from the engine")
    return np.tanh(x)


def forking(x):
    """Leave a copy of the process behind, which comes back, too."""
    os.fork()
    return np.tanh(x)


def pooling(x):
    """Compute in processes that are forked."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return np.array(pool.map(math.tanh, x.tolist()), x.dtype)


def keeping(x):
    """Keep all that comes along."""
    _kept.append(x)
    _kept.append(np.tanh(x))
    return _kept[-1]


class Shapeless:
    """What is no tensor."""

    @property
    def shape(self):
        """Fail."""
        raise RuntimeError("no shape")


_kept, _places = [], {}

Narrow = odd("Narrow", lambda x: np.tanh(x).astype("float16"))
Nothing = odd("Nothing", lambda x: None)
Tuple = odd("Tuple", lambda x: (np.tanh(x),))
Number = odd("Number", lambda x: 0.5)
Strange = odd("Strange", lambda x: Shapeless())
Exiting = odd("Exiting", exiting)
Interrupted = odd("Interrupted", interrupted)
Sometimes = odd("Sometimes", lambda x: np.tanh(x)[:-1] if x.shape == (4,) else np.tanh(x))
Printing = odd("Printing", printing)
Forking = odd("Forking", forking)
Pooling = odd("Pooling", pooling)
Keeping = odd("Keeping", keeping)
Viewing = odd("Viewing", lambda x: x)
OneOfTwo = bad("OneOfTwo", lowering=sorted_by(lambda x, **attributes: (np.sort(x),)))
NoTuple = bad("NoTuple", lowering=sorted_by(lambda x, **attributes: np.sort(x)))
Endless = bad("Endless", lowering=sorted_by(lambda x, **attributes: itertools.repeat(x)))
NoCreate = bad("NoCreate", create=failing(RuntimeError("not at home")))
NoRead = bad("NoRead", read=failing(RuntimeError("not at home")))
ShortRead = bad("ShortRead", read=lambda self, tensor: b"abc")
NoDescribe = bad("NoDescribe", describe=failing(RuntimeError("not at home")))
NoLowering = bad("NoLowering", lowering=failing(RuntimeError("not at home")))
NoLowers = bad("NoLowers", lowers=failing(RuntimeError("not at home")))
NotMade = bad("NotMade", __init__=failing(RuntimeError("not at home")))
LeavesEarly = bad("LeavesEarly", __init__=failing(SystemExit(5)))
LeavesCompiling = bad("LeavesCompiling", compile=failing(SystemExit(5)))
NoRelease = bad("NoRelease", release_memory=failing(RuntimeError("not at home")))


class Slow(NumPyEngine):
    """Takes its time for one operation."""

    name = "slow"

    def lowering(self, signature):
        """Give what sleeps first."""
        function = super().lowering(signature)
        return (
            function
            if signature.operation != "exp"
            else lambda x: (time.sleep(0.02), function(x))[1]
        )


def _slowly(function, x):
    time.sleep(0.02)
    return function(x)


def _kept_operand(function, x):
    _kept.append(x)
    return function(x)


def _kept_result(function, x):
    _kept.append(function(x))
    return _kept[-1]


def _in_place(function, x):
    x.setflags(write=True)
    x[...] = function(x)
    return x


def _same_place(function, x):
    made = function(x)
    place = _places.setdefault((made.shape, made.dtype), made)
    place[...] = made
    return place


def _printed(function, x):
    print("hello")
    return function(x)


def _forked(function, x):
    os.fork()
    return function(x)


def _raise(error):
    raise error


def _not_nan(function, a, b):
    made = function(a, b)
    return np.nan_to_num(made) if made.dtype.kind == "f" else made


#: Functions that take the right function, and then the operands.
FAULTS = {
    "tanh": _kept_operand,
    "exp": _kept_result,
    "neg": _in_place,
    "abs": _same_place,
    "log1p": lambda function, x: time.sleep(1000),
    "asin": lambda function, x: os._exit(9),
    "acos": lambda function, x: os.abort(),
    "atan": lambda function, x: _raise(SystemExit(1)),
    "sin": _printed,
    "sqrt": _forked,
    "relu": lambda function, x: None,
    "floor": lambda function, x: function(x)[..., :-1] if x.shape[-1:] == (7,) else function(x),
    "expm1": lambda function, x: function(x).astype("float64"),
    "sort": lambda function, x, **attributes: function(x, **attributes)[:1],
    "topk": lambda function, x, **attributes: function(x, **attributes)[0],
    "add": lambda function, a, b: function(a, b) * 2,
    "index_select": lambda function, x, index, dim: np.take(x, index, dim),
    "maximum": _not_nan,
}


class Faulty(NumPyEngine):
    """Has something wrong with many operations."""

    name = "faulty"

    def lowering(self, signature):
        """Give a function that is wrong, where there is one."""
        if signature.operation == "ceil":
            raise NotImplementedError("there is none")
        function = super().lowering(signature)
        fault = FAULTS.get(signature.operation)
        return function if fault is None else partial(fault, function)


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
