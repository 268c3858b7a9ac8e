"""One session of benches/ground.py: a client of a server with two workers.

usage: ground.py HOST:PORT

Reads a name from each line, runs a round of it, and answers with the median time of one use in
microseconds. `hold` and `busy` load the cluster until the next line arrives, and answer at once.
"""

import sys
import threading
import time

import gt
import numpy as np
from gt import ShardConfig, SignalConfig

gt.connect(sys.argv[1])
gt.register_config("rows", SignalConfig(ShardConfig(axis=0)))
gt.register_config("copies", SignalConfig(ShardConfig(replicated=True)))
gt.register_config("first", SignalConfig(ShardConfig(workers=[0])))
gt.register_config("second", SignalConfig(ShardConfig(workers=[1])))
RANDOM = np.random.default_rng(0)


def within(scope, make):
    with gt.signal.context(scope):
        return make()


def median(function, uses, repeats):
    """Return the median microseconds of one use."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2] / uses * 1e6


class Training:
    """Data-parallel training of an MLP on a data set that is sharded by rows over two workers."""

    BATCH, STEPS = 64, 100

    def __init__(self):
        x = RANDOM.standard_normal((self.BATCH * self.STEPS, 784)).astype("float32")
        y = RANDOM.standard_normal((self.BATCH * self.STEPS, 10)).astype("float32")
        self.x, self.y = (within("rows", lambda a=a: gt.from_numpy(a)) for a in (x, y))
        shapes = ((784, 256), (256, 10))
        self.weights = [
            within("copies", lambda s=s: (gt.randn(*s) * 0.03).detach().requires_grad_())
            for s in shapes
        ]
        self.optimizer = gt.optim.SGD(self.weights, lr=1e-4)

    def epoch(self, begins):
        """Train on the batches that begin at these rows, and fetch the last loss."""
        for begin in begins:
            x, y = self.x[begin : begin + self.BATCH], self.y[begin : begin + self.BATCH]
            first, second = self.weights
            difference = (x @ first).relu() @ second - y
            loss = (difference * difference).mean()
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
        assert loss.item() < 10

    def moving(self):
        self.epoch(range(0, self.BATCH * self.STEPS, self.BATCH))

    def fixed(self):
        self.epoch([0] * self.STEPS)


class Load:
    """Products on the first worker; with `hold` the second worker waits for each of them."""

    def __init__(self):
        self.x = within("first", lambda: gt.randn(1500, 1500) * 0.02)
        self.stop = threading.Event()

    def run(self, scope):
        while not self.stop.is_set():
            product = within("first", lambda: self.x @ self.x)
            within(scope, lambda made=product: (made + 1).sum()).item()


def chain():
    """Run small additions on the second worker."""
    with gt.signal.context("second"):
        x = ones
        for _ in range(1000):
            x = x + ones
        x.sum().item()


ones = within("second", lambda: gt.ones(8))
training, load = Training(), Load()
WORK = {
    "moving": (training.moving, training.STEPS, 3),
    "fixed": (training.fixed, training.STEPS, 3),
    "chain": (chain, 1000, 15),
}
for function, _, _ in WORK.values():
    function()
print("ready", flush=True)
thread = None
for line in sys.stdin:
    if thread is not None:
        load.stop.set()
        thread.join()
        load.stop.clear()
        thread = None
    name = line.strip()
    if name in ("hold", "busy"):
        scope = "second" if name == "hold" else "first"
        thread = threading.Thread(target=load.run, args=(scope,), daemon=True)
        thread.start()
        print(0, flush=True)
    elif name == "rest":
        print(0, flush=True)
    else:
        print(median(*WORK[name]), flush=True)
