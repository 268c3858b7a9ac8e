"""Engines with faults, for tests."""

import contextlib
import itertools
import math
import multiprocessing
import os
import time
from functools import partial

import numpy as np
from gt.engines.numpy import NumPyEngine


class Raising(NumPyEngine):
    """Raises in tanh."""

    name = "raising"
    lowerings = {**NumPyEngine.lowerings, "tanh": lambda x: missing(x)}  # noqa: F821


class Misshapen(NumPyEngine):
    """Returns one element too few from tanh."""

    name = "misshapen"
    lowerings = {**NumPyEngine.lowerings, "tanh": lambda x: np.tanh(x)[:-1]}


class Hanging(NumPyEngine):
    """Never returns from tanh."""

    name = "hanging"
    lowerings = {**NumPyEngine.lowerings, "tanh": lambda x: time.sleep(1000)}


class Swallowing(NumPyEngine):
    """Swallows the exception of a signal in tanh, as `__del__` and callbacks of libraries do."""

    name = "swallowing"

    def _tanh(x):
        with contextlib.suppress(BaseException):
            print("at work", flush=True)
            time.sleep(10)
        return np.tanh(x)

    lowerings = {**NumPyEngine.lowerings, "tanh": _tanh}


class Dying(NumPyEngine):
    """Ends its process in tanh."""

    name = "dying"
    lowerings = {**NumPyEngine.lowerings, "tanh": lambda x: os._exit(9)}


class Fragile(NumPyEngine):
    """Ends its process in tanh for some values."""

    name = "fragile"
    lowerings = {
        **NumPyEngine.lowerings,
        "tanh": lambda x: os._exit(9) if 20 <= x.max() < 21 else np.tanh(x),
    }


class BadCompiler(NumPyEngine):
    """Compiles everything, wrongly."""

    name = "bad_compiler"

    def compile(self, plan):
        """Return a function that doubles the first output."""

        def code(values):
            outputs = self.run(plan, values)
            return [outputs[0] * 2, *outputs[1:]]

        return code


class NoCompiler(NumPyEngine):
    """Fails to compile anything."""

    name = "no_compiler"

    def compile(self, plan):
        """Fail."""
        raise RuntimeError("the compiler is unavailable")


class SlowCompiler(NumPyEngine):
    """Never finishes compiling."""

    name = "slow_compiler"
    compiles_by_default = True

    def compile(self, plan):
        """Sleep."""
        time.sleep(1000)


def bad(name, **methods):
    """Return an engine class that overrides methods of NumPy's engine."""
    return type(name, (NumPyEngine,), {"name": name.lower(), **methods})


def odd(name, tanh):
    """Return an engine class with another tanh, whose result is not converted."""

    def lowering(self, signature):
        return tanh if signature.operation == "tanh" else NumPyEngine.lowering(self, signature)

    return bad(name, lowering=lowering)


def failing(error):
    """Return a method that raises."""

    def method(self, *given):
        raise error

    return method


def sorted_by(function):
    """Return the method `lowering` of an engine that sorts by a function."""

    def lowering(self, signature):
        sorts = signature.operation == "sort"
        return function if sorts else NumPyEngine.lowering(self, signature)

    return lowering


def exiting(x):
    """Raise SystemExit, as `sys.exit` does."""
    raise SystemExit(5)


def interrupted(x):
    """Raise KeyboardInterrupt, as Ctrl-C does."""
    raise KeyboardInterrupt


def printing(x):
    """Print a line."""
    print("from the engine")
    return np.tanh(x)


def forking(x):
    """Fork; both processes return."""
    os.fork()
    return np.tanh(x)


def pooling(x):
    """Compute in forked processes."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return np.array(pool.map(math.tanh, x.tolist()), x.dtype)


def keeping(x):
    """Keep references to the operand and the result."""
    _kept.append(x)
    _kept.append(np.tanh(x))
    return _kept[-1]


class Shapeless:
    """An object that is not a tensor."""

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
NoCreate = bad("NoCreate", create=failing(RuntimeError("unavailable")))
NoRead = bad("NoRead", read=failing(RuntimeError("unavailable")))
ShortRead = bad("ShortRead", read=lambda self, tensor: b"abc")
NoDescribe = bad("NoDescribe", describe=failing(RuntimeError("unavailable")))
NoLowering = bad("NoLowering", lowering=failing(RuntimeError("unavailable")))
NoLowers = bad("NoLowers", lowers=failing(RuntimeError("unavailable")))
NotMade = bad("NotMade", __init__=failing(RuntimeError("unavailable")))
LeavesEarly = bad("LeavesEarly", __init__=failing(SystemExit(5)))
LeavesCompiling = bad("LeavesCompiling", compile=failing(SystemExit(5)))
NoRelease = bad("NoRelease", release_memory=failing(RuntimeError("unavailable")))


class Slow(NumPyEngine):
    """Is slow in one operation."""

    name = "slow"

    def lowering(self, signature):
        """Return a function that sleeps first in exp."""
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


#: Operation -> a faulty function of the correct function and the operands.
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
    """Has faults in many operations."""

    name = "faulty"

    def lowering(self, signature):
        """Return the faulty function of an operation if it has one."""
        if signature.operation == "ceil":
            raise NotImplementedError("there is none")
        function = super().lowering(signature)
        fault = FAULTS.get(signature.operation)
        return function if fault is None else partial(fault, function)


class Tampering(NumPyEngine):
    """Compiles everything with a fault: subclasses change the outputs in `tamper`."""

    def compile(self, plan):
        """Return a function that calls `tamper` on the outputs of the plan."""
        last: list = []

        def code(values):
            given = list(values)
            outputs = [np.copy(output) for output in self.run(plan, values)]
            self.tamper(outputs, given, last)
            last[:] = outputs
            return outputs

        return code


class Tail(Tampering):
    """Computes a wrong last element."""

    name = "tail"

    def tamper(self, outputs, given, last):
        """Change the last element."""
        for output in outputs:
            if output.dtype == np.float32:
                output.reshape(-1)[-1:] *= np.float32(1.001)


class Stale(Tampering):
    """Returns the values of the previous run."""

    name = "stale"

    def tamper(self, outputs, given, last):
        """Replace the outputs by those of the previous run."""
        for output, before in zip(outputs, last, strict=bool(last)):
            output[...] = before


class Overwriting(Tampering):
    """Writes to its inputs."""

    name = "overwriting"

    def tamper(self, outputs, given, last):
        """Negate the first tensor."""
        tensor = next(value for value in given if isinstance(value, np.ndarray) and value.ndim)
        tensor.setflags(write=True)
        np.negative(tensor, out=tensor)
