"""One side of benches/data.py: steps on batches that are present, transferred, or prefetched.

usage: data.py embedded|HOST:PORT

Reads a line of JSON, {"mode", "megabytes", "milliseconds", "steps", "waits"}, runs it, and answers
with the milliseconds of a step.
"""

import json
import sys
import time
from itertools import cycle, islice
from typing import Any

import gt
import numpy as np

if sys.argv[1] != "embedded":
    gt.connect(sys.argv[1])

STEP = gt.custom_op("bench:computed", lambda x, milliseconds=0.0: (x.dtype, (1,)))


def batches_of(mode: str, arrays: list[np.ndarray], steps: int):
    """Return an iterable of the batches of a number of steps."""
    if mode == "there":
        return islice(cycle([gt.from_numpy(array) for array in arrays]), steps)
    source = islice(cycle(arrays), steps)
    return gt.data.prefetch(source) if mode == "prefetched" else map(gt.from_numpy, source)


def run(mode: str, megabytes: float, milliseconds: float, steps: int, waits: bool) -> float:
    """Run some steps; return the milliseconds of one."""
    length = int(megabytes * 2**20 / 4)
    arrays = [np.full(length, number, np.float32) for number in range(3)]
    batches = iter(batches_of(mode, arrays, steps + 1))
    # The first batch cannot be hidden behind a step.
    STEP(next(batches), milliseconds=0.0).item()
    start = time.perf_counter()
    total: Any = 0.0
    for number, batch in enumerate(batches, 1):
        result = STEP(batch, milliseconds=milliseconds)
        total = total + result
        if waits:
            assert result.item() == number % 3
    assert total.item() == sum(number % 3 for number in range(1, steps + 1))
    return (time.perf_counter() - start) / steps * 1e3


print("ready", flush=True)
for line in sys.stdin:
    print(run(**json.loads(line)), flush=True)
