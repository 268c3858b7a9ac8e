"""Timings of common operations on an engine, in NumPy and on the native engine."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gt.engines.check.report import Timing
from gt.engines.check.values import kind_of, put
from gt.engines.engine import Engine, Signature
from gt.engines.numpy import NumPyEngine

#: The minimum duration of a measurement in seconds, and how many are made; the best counts.
_SPAN, _TIMES = 0.02, 5

#: Name -> (operation, shapes of its operands, attributes). All operands are float32.
MEASURED: dict[str, tuple[str, list[tuple[int, ...]], dict[str, Any]]] = {
    "add, 4": ("add", [(4,), (4,)], {}),
    "add, 1000x1000": ("add", [(1000, 1000), (1000, 1000)], {}),
    "exp, 1000x1000": ("exp", [(1000, 1000)], {}),
    "matmul, 32x32": ("matmul", [(32, 32), (32, 32)], {}),
    "matmul, 1000x1000": ("matmul", [(1000, 1000), (1000, 1000)], {}),
    "sum of rows, 1000x1000": ("sum", [(1000, 1000)], {"dim": (1,), "keepdim": False}),
    "softmax, 1000x1000": ("softmax", [(1000, 1000)], {"dim": -1}),
    "permute, 1000x1000": ("permute", [(1000, 1000)], {"dims": (1, 0)}),
}


def timings(engine: Engine, tell: Callable[[str], None]) -> Iterator[Timing]:
    """Yield the timings of the operations that the engine lowers."""
    numpy = NumPyEngine()
    for name, (operation, shapes, attributes) in MEASURED.items():
        tell(name)
        if engine.lowers(operation):
            of_numpy = numpy.lowers(operation)
            yield Timing(
                name,
                _measured(engine, operation, shapes, attributes),
                _measured(numpy, operation, shapes, attributes) if of_numpy else None,
                _measured(numpy, operation, shapes, attributes, natively=True),
            )


def _measured(
    engine: Engine,
    operation: str,
    shapes: list[Any],
    attributes: dict[str, Any],
    natively: bool = False,
) -> float:
    """Return the seconds that one call takes, including the wait for the last result's values."""
    random = np.random.default_rng(0)
    arrays = [random.uniform(-1, 1, shape).astype("float32") for shape in shapes]
    signature = Signature(operation, tuple(map(kind_of, arrays)), "float32")
    function = engine.natively(signature) if natively else engine.lowering(signature)
    operands = [put(engine, array) for array in arrays]

    def run(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            made = function(*operands, **attributes)
        engine.read(made)
        return time.perf_counter() - start

    run(1)
    once = run(1)
    count = max(1, round(_SPAN / max(once, 1e-7)))
    return min(run(count) for _ in range(_TIMES)) / count
