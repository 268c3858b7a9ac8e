"""One side of the benchmarks: a process that runs rounds of named works on demand.

usage: side.py torch|embedded|HOST:PORT THREADS

Reads a name from each line, runs a round of it, and answers with a line of JSON: the median time of
one use in microseconds, and the CPU time of this process per use. Every round fetches and checks
its results.
"""

import json
import os
import sys
import time

SIDE, THREADS = sys.argv[1], int(sys.argv[2])
if THREADS == 1:
    os.sched_setaffinity(0, {0})

import numpy as np  # noqa: E402

if SIDE == "torch":
    import torch as lib

    lib.set_num_threads(THREADS)

    def fetch(tensor):
        return tensor.detach().numpy()
else:
    import gt as lib

    if SIDE != "embedded":
        lib.connect(SIDE)

    def fetch(tensor):
        return tensor.numpy()


def timed(function, repeats):
    """Return the median seconds of one call."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


RANDOM = np.random.default_rng(0)


def tensor(*shape):
    return lib.from_numpy(RANDOM.standard_normal(shape).astype("float32"))


A, B = tensor(8), tensor(8)
A_SUM, B_SUM = fetch(A).sum(), fetch(B).sum()


def chain():
    c = A
    for _ in range(1000):
        c = c + B
    assert abs(c.sum().item() - (A_SUM + 1000 * B_SUM)) < 1 + abs(B_SUM)


def roundtrip():
    assert abs((A + B).sum().item() - (A_SUM + B_SUM)) < 1e-3


X, Y = tensor(1000, 1000), tensor(1000, 1000)
XY = fetch(X) @ fetch(Y)


def matmul():
    got = fetch(X @ Y)
    assert abs(got[7, 9] - XY[7, 9]) < 1e-2


class Mlp:
    """784-256-10, batch 64, mean squared error, plain SGD, the loss fetched at the end."""

    def __init__(self):
        self.x, self.y = tensor(64, 784), tensor(64, 10)
        self.w1, self.b1 = tensor(256, 784) * 0.03, tensor(256) * 0.03
        self.w2, self.b2 = tensor(10, 256) * 0.06, tensor(10) * 0.06
        self.parameters = [
            p.detach().requires_grad_() for p in (self.w1, self.b1, self.w2, self.b2)
        ]
        if SIDE == "torch":
            # PyTorch's fastest variant: all parameters in one fused call.
            self.optimizer = lib.optim.SGD(self.parameters, lr=1e-4, fused=True)
        else:
            self.optimizer = lib.optim.SGD(self.parameters, lr=1e-4)
        self.last = float("inf")

    def step(self):
        w1, b1, w2, b2 = self.parameters
        hidden = (self.x @ w1.T + b1).relu()
        difference = hidden @ w2.T + b2 - self.y
        loss = (difference * difference).mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss

    def steps(self, count=20):
        for _ in range(count):
            loss = self.step()
        value = loss.item()
        assert value < self.last * 1.01, "training makes progress"
        self.last = value


MLP = Mlp()

#: name: (function, uses in one call, calls in one round)
WORK = {
    "add": (chain, 1000, 50),
    "item": (roundtrip, 1, 300),
    "matmul": (matmul, 1, 7),
    "mlp": (MLP.steps, 20, 5),
}

for function, _, _ in WORK.values():
    function()
print("ready", flush=True)
for line in sys.stdin:
    function, uses, repeats = WORK[line.strip()]
    cpu = time.process_time()
    seconds = timed(function, repeats) / uses
    cpu = (time.process_time() - cpu) / (uses * repeats)
    print(json.dumps({"us": seconds * 1e6, "cpu_us": cpu * 1e6}), flush=True)
