"""A client of a server for benches/recovery.py.

Reads commands from lines: `time` answers with the seconds of one unit of the work, `run N` runs it,
and `steps SECONDS` prints the time at which each step completes.
"""

import sys
import time

import gt
import numpy as np
from gt import nn, optim


def addition():
    x, y = gt.ones(8), gt.ones(8)

    def run(count: int) -> None:
        z = x
        for _ in range(count):
            z = z + y
        z.sum().item()

    return run, 20_000


def mlp():
    data = np.random.default_rng(0)
    inputs = gt.from_numpy(data.standard_normal((64, 784)).astype("float32"))
    labels = gt.from_numpy(data.integers(0, 10, 64))
    gt.manual_seed(0)
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = optim.SGD(model.parameters(), lr=1e-3)

    def run(count: int) -> None:
        for _ in range(count):
            loss = nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        loss.item()

    return run, 300


def loop():
    x = gt.ones(8)

    def run(count: int) -> None:
        nonlocal x
        for step in range(count):
            x = x * 0.5 + 1
            if step % 1000 == 0:
                x.sum().item()
        x.sum().item()

    return run, 1000


def large(bytes_held: int):
    tensors = [gt.randn(1 << 20) for _ in range(bytes_held >> 22)]

    def run(count: int) -> None:
        for _ in range(count):
            for at, tensor in enumerate(tensors):
                tensors[at] = tensor * 0.999
            sum(tensor[0].item() for tensor in tensors[:1])

    return run, 1


def main() -> None:
    address, work = sys.argv[1], sys.argv[2]
    gt.connect(address, insecure=address.startswith("127."))
    run, count = {
        "addition": addition,
        "mlp": mlp,
        "loop": loop,
        "large": lambda: large(1 << 30),
    }[work]()
    run(count)
    print("ready", flush=True)
    for line in sys.stdin:
        if line == "time\n":
            begin = time.perf_counter()
            run(count)
            print((time.perf_counter() - begin) / count, flush=True)
        elif line.startswith("run"):
            run(int(line.split()[1]))
            print("done", flush=True)
        elif line.startswith("steps"):
            # Print the time at which each step completes, for a number of seconds.
            until = time.time() + float(line.split()[1])
            while time.time() < until:
                run(1)
                print(time.time(), flush=True)
            print("over", flush=True)


main()
