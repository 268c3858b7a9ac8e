"""The loops whose machine instructions are counted (guard.py), and timed (reference.py).

usage: guard.py embedded|torch|pytorch|HOST:PORT [LOOP]

Each loop first runs until it is in the steady state of a long program (including hot paths), then
some rounds are counted. Without LOOP, each line of the input names a loop, and is answered with the
median microseconds of a round, or with an empty line if this version cannot run it.

`torch` is GT's device in PyTorch, `pytorch` is PyTorch itself.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from callgrind import counted  # noqa: E402

SIDE, NAME = sys.argv[1], (sys.argv[2:] or [""])[0]

if SIDE == "pytorch":
    import torch as gt

    gt.set_num_threads(1)
else:
    import gt

if SIDE == "torch":
    import gt.torch
    import torch
elif SIDE == "embedded":
    gt.gpu_workers(2 if NAME == "sharded_slices" else 1)
elif SIDE != "pytorch":
    gt.connect(SIDE)

#: A loop: its function, the number of rounds before counting, and the number of counted rounds.
Loop = tuple[Callable[[], object], int, int]
LOOPS: dict[str, Callable[[], Loop]] = {}


def loop(before: int, rounds: int) -> Callable:
    """Register a function that returns the body of a loop."""

    def register(make: Callable[[], Callable[[], object]]) -> Callable:
        LOOPS[make.__name__] = lambda: (make(), before, rounds)
        return make

    return register


def chain(x, one):
    """Return a function that adds a thousand times, and fetches the sum."""

    def run():
        y = x
        for _ in range(1000):
            y = y + one
        assert y.sum().item() == 8000

    return run


@loop(12, 10)
def addition_1000():
    """Add a thousand times, then fetch the sum."""
    return chain(gt.zeros(8), gt.ones(8))


@loop(100, 200)
def round_trip():
    """Add, sum and fetch."""
    a, b = gt.ones(8), gt.ones(8)

    def run():
        assert (a + b).sum().item() == 16

    return run


@loop(100, 200)
def sum_item():
    """Sum and fetch."""
    a = gt.ones(8)

    def run():
        assert a.sum().item() == 8

    return run


@loop(100, 200)
def item():
    """Fetch a value that is already known."""
    a = gt.ones(8).sum()
    a.item()

    def run():
        assert a.item() == 8

    return run


@loop(5, 20)
def fetch_4_mb():
    """Add a million numbers, and fetch them as an array."""
    a, b = gt.ones(1_000_000), gt.ones(1_000_000)

    def run():
        assert (a + b).numpy()[-1] == 2

    return run


@loop(100, 100)
def upload():
    """Create a tensor of three numbers, and fetch their sum."""

    def run():
        assert gt.tensor([1.0, 2.0, 3.0]).sum().item() == 6

    return run


class Perceptron:
    """A network of two layers, small enough that its arithmetic costs little."""

    def __init__(self):
        self.x, self.y = gt.ones(4, 8), gt.zeros(4, 2)
        self.model = gt.nn.Sequential(gt.nn.Linear(8, 8), gt.nn.ReLU(), gt.nn.Linear(8, 2))
        self.optimizer = gt.optim.SGD(self.model.parameters(), lr=1e-3)

    def loss(self):
        return gt.nn.functional.mse_loss(self.model(self.x), self.y)

    def step(self):
        self.optimizer.zero_grad()
        loss = self.loss()
        loss.backward()
        self.optimizer.step()
        return loss


@loop(12, 5)
def training_20():
    """Train for twenty steps, then fetch the loss."""
    network = Perceptron()

    def run():
        for _ in range(20):
            loss = network.step()
        loss.item()

    return run


@loop(20, 20)
def training_item():
    """Train for a step, and fetch the loss."""
    network = Perceptron()

    def run():
        network.step().item()

    return run


@loop(20, 50)
def backward():
    """Compute a loss and its gradients, and fetch one."""
    network = Perceptron()
    weight = network.model[0].weight

    def run():
        network.loss().backward()
        weight.grad.sum().item()
        network.model.zero_grad()

    return run


@loop(20, 40)
def sharded_slices():
    """Multiply slices of a tensor that is sharded over two workers, and fetch a sum."""
    gt.register_config("rows", gt.SignalConfig(gt.ShardConfig(axis=0)))
    with gt.signal.context("rows"):
        data = gt.ones(64, 8)
    weight = gt.ones(8, 2)

    def run():
        for start in range(0, 64, 16):
            product = data[start : start + 16] @ weight
        assert product.sum().item() == 256

    return run


@loop(2, 2)
def generation():
    """Generate twelve tokens, each with the keys and values of all before it."""
    functional = gt.nn.functional
    table, weight = gt.ones(16, 8), gt.ones(24, 8)

    def run():
        token, keys, values = 1, None, None
        for _ in range(12):
            x = functional.embedding(gt.tensor([token], dtype=gt.int64), table)
            query, key, value = functional.linear(x, weight).chunk(3, dim=-1)
            keys = key if keys is None else gt.cat([keys, key])
            values = value if values is None else gt.cat([values, value])
            found = functional.scaled_dot_product_attention(query, keys, values)
            token = (found @ table.T).argmax().item()

    return run


@loop(50, 50)
def layers():
    """Normalize, compute probabilities, and fetch one."""
    functional = gt.nn.functional
    x, weight, bias = gt.ones(4, 8), gt.ones(8), gt.zeros(8)

    def run():
        normal = functional.layer_norm(x, (8,), weight, bias)
        functional.softmax(normal, dim=-1)[0, 0].item()

    return run


@loop(12, 10)
def device_addition_1000():
    """Add a thousand times on PyTorch's device, then fetch the sum."""
    return chain(torch.zeros(8, device="cluster"), torch.ones(8, device="cluster"))


@loop(50, 50)
def device_sum_item():
    """Sum and fetch on PyTorch's device."""
    a = torch.ones(8, device="cluster")

    def run():
        assert a.sum().item() == 8

    return run


@loop(50, 50)
def device_upload():
    """Copy three numbers to PyTorch's device, and fetch their sum."""

    def run():
        assert torch.tensor([1.0, 2.0, 3.0], device="cluster").sum().item() == 6

    return run


def play() -> None:
    """Time the loop that each line of input names."""
    ready: dict[str, Loop] = {}
    print("ready", flush=True)
    for line in sys.stdin:
        name, times = line.strip(), []
        run, before, rounds = ready.get(name) or LOOPS[name]()
        try:
            for _ in range(0 if name in ready else 3 * before):
                run()
            for _ in range(max(rounds, 10)):
                begin = time.perf_counter()
                run()
                times.append(time.perf_counter() - begin)
        except (AttributeError, RuntimeError, TypeError):
            pass
        ready[name] = run, before, rounds
        print(statistics.median(times) * 1e6 if times else "", flush=True)


def main() -> None:
    """Run and count a loop, and print the number of counted rounds."""
    run, before, rounds = LOOPS[NAME]()
    for _ in range(before):
        run()
    # From here on, garbage collection depends on the number of rounds, not on earlier imports.
    gc.collect()
    with counted():
        for _ in range(rounds):
            run()
    print(rounds)


if __name__ == "__main__":
    main() if NAME else play()
