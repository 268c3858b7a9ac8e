"""One side of the benchmark of builds; see benches/builds.py.

Reads the name of a work from each line and answers with its median time. `names` answers with the
names of all works: elementwise operations, and the works of workloads/operations.py that libraries
compute (matrices, Fourier transforms).
"""

import json
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import gt  # noqa: E402
from workloads.operations import works  # noqa: E402

X = gt.randn(1_000_000)


def elementwise() -> None:
    """Run six operations on a million numbers, and fetch the sum."""
    y = ((X * 2 + 1).tanh() * X - 0.5).relu() + X
    assert y.sum().item() == y.sum().item()


def attention() -> None:
    """Run attention of 8 heads over 256 positions, and fetch an element."""
    q = X[: 8 * 256 * 64].reshape(1, 8, 256, 64)
    gt.nn.functional.scaled_dot_product_attention(q, q, q)[0, 0, 0, 0].item()


NAMED = {"six elementwise operations of 10^6": elementwise, "attention, 8 x 256 x 64": attention}
NAMED |= {
    name: run
    for name, run in works("gt").items()
    if name.split()[0]
    in ("svd", "eigh", "solve", "cholesky", "qr", "lu", "fft", "rfft", "inv", "sort")
}

for run in NAMED.values():
    run()
print("ready", flush=True)
for line in sys.stdin:
    if line.strip() == "names":
        print(json.dumps(list(NAMED)), flush=True)
        continue
    times = []
    for _ in range(7):
        began = time.perf_counter()
        NAMED[line.strip()]()
        times.append(time.perf_counter() - began)
    print(json.dumps({"ms": statistics.median(times) * 1e3}), flush=True)
