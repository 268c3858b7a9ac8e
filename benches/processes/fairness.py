"""One client of benches/fairness.py: computes for some seconds, and reports its work.

Reads a line `SECONDS` from standard input for each round. A client that floods answers with the
units of work that were done in time, those in all, and the seconds that they took; one that loops
waits for each unit of its work, and answers with the units done; one that asks, every 20 ms or in a
burst every second, answers with the milliseconds of each answer.
"""

import queue
import sys
import threading
import time
from pathlib import Path

import gt
import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples" / "models"))

#: The default duration of a chunk, in seconds when running alone, and the number of chunks in
#: flight. A chunk is a series of units of work that is awaited as one.
CHUNK, AHEAD = 0.1, 4


def product(size: int):
    """Return a work: a product of square matrices, of which one is the previous result."""
    rows = np.linalg.qr(np.random.default_rng(0).normal(size=(size, size)))[0]
    a = gt.from_numpy(rows.astype("float32"))
    x = a

    def work() -> gt.Tensor:
        nonlocal x
        # `a` is orthogonal, so that no value grows.
        x = x @ a
        return x

    return work


def chain(length: int):
    """Return a work: a chain of small additions."""
    a = gt.zeros(1000)

    def work() -> gt.Tensor:
        x = a
        for _ in range(length):
            x = x + 1
        return x

    return work


def cold_chain(length: int):
    """Return a work that is never the same twice, so that it does not become a hot path."""
    a, round_ = gt.zeros(1000), iter(range(1 << 30))

    def work() -> gt.Tensor:
        x, count = a, next(round_)
        for place in range(length):
            x = x + 1 if (count >> place % 20) & 1 else x * 1.5
        return x

    return work


def sharded(rows: int, width: int):
    """Return a work: a step over rows on two workers, each of which needs the other's sum."""
    gt.register_config("rows", gt.SignalConfig(gt.ShardConfig(axis=0, workers=[0, 1])))
    with gt.signal.context("rows"):
        x = gt.rand(rows, width)
    mean = gt.zeros(width)

    def work() -> gt.Tensor:
        nonlocal mean
        with gt.signal.context("rows"):
            mean = (x * x + mean).sum(0) / rows
        return mean

    return work


def small_qwen3():
    """Return a language model of 4 layers, width 256."""
    from qwen3 import Config, Qwen3

    return Qwen3(Config(1024, 256, 768, 4, 8, 4, 32))


def tokens():
    """Return a work: a model's next token."""
    from generation import Cache

    model, length = small_qwen3(), 256
    cache, token = Cache(4, (1, 4, length, 32)), gt.tensor([[1]], dtype=gt.int64)

    def work() -> gt.Tensor:
        nonlocal token
        if cache.used == length:
            cache.used = 0
        with gt.no_grad():
            token = model(token, cache=cache)[:, -1:].argmax(-1)
        return token

    return work


def training():
    """Return a work: a step of a model's training."""
    model = small_qwen3()
    optimizer = gt.optim.AdamW(model.parameters())
    ids = gt.randint(0, 1024, (4, 65))

    def work() -> gt.Tensor:
        optimizer.zero_grad()
        scores = model(ids[:, :-1])
        loss = gt.nn.functional.cross_entropy(scores.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        return loss.detach()

    return work


WORKS = {
    "tokens": tokens,
    "training": training,
    "sharded": lambda: sharded(2000, 500),
    "p128": lambda: product(128),
    "p256": lambda: product(256),
    "p512": lambda: product(512),
    "p1024": lambda: product(1024),
    "p1280": lambda: product(1280),
    "p2048": lambda: product(2048),
    "chain": lambda: chain(50),
    "cold": lambda: cold_chain(50),
}


def seconds_of(work) -> float:
    """Return the seconds of one unit of work when running alone."""
    count, start = 1, time.perf_counter()
    while True:
        run(work, count).item()
        taken = time.perf_counter() - start
        if taken > 0.2:
            return taken / count
        count, start = 2 * count, time.perf_counter()


def run(work, count: int) -> gt.Tensor:
    """Issue `count` units of work; return a scalar that depends on all of them."""
    total = gt.zeros(())
    for _ in range(count):
        total = total + work().flatten()[0]
    return total


def flood(work, each: float, until: float, chunk: float) -> tuple[int, int]:
    """Keep the worker busy until a time; return the units done by then, and in all."""
    count = max(1, int(chunk / each))
    results: queue.Queue = queue.Queue(AHEAD)
    done = [0, 0]

    def wait() -> None:
        while (result := results.get()) is not None:
            result.item()
            done[0] += count if time.monotonic() < until else 0
            done[1] += count

    waiter = threading.Thread(target=wait)
    waiter.start()
    while time.monotonic() < until:
        results.put(run(work, count))
    results.put(None)
    waiter.join()
    return done[0], done[1]


def ask(work, until: float, pause: float = 0.02) -> list[float]:
    """Fetch a value every 20 ms; return the milliseconds that each fetch took."""
    times = []
    while time.monotonic() < until:
        start = time.perf_counter()
        work().sum().item()
        times.append((time.perf_counter() - start) * 1e3)
        time.sleep(pause)
    return times


def loop(work, until: float) -> int:
    """Compute and wait for a value until a time; return how many were."""
    count = 0
    while time.monotonic() < until:
        work().sum().item()
        count += 1
    return count


def bursts(work, each: float, until: float) -> list[float]:
    """Compute for 20 ms every second; return the milliseconds until each answer."""
    count = max(1, round(0.02 / each))

    def burst() -> gt.Tensor:
        return run(work, count)

    return ask(burst, until, pause=1.0)


def main() -> None:
    """Run a round for each line of input, and print its results."""
    address, kind, name, threads = *sys.argv[1:4], int(sys.argv[4])
    chunk = float(sys.argv[5]) if len(sys.argv) > 5 else CHUNK
    gt.connect(address)
    if kind == "ask" and name == "add":
        a, b = gt.ones(100), gt.ones(100)
        works = [lambda: a + b]
    else:
        works = [WORKS[name]() for _ in range(threads)]
    each = [seconds_of(work) for work in works[:1]] * threads
    print("ready", flush=True)
    for line in sys.stdin:
        until = time.monotonic() + float(line)
        if kind == "ask":
            print(*ask(works[0], until), flush=True)
            continue
        if kind == "bursts":
            print(*bursts(works[0], each[0], until), flush=True)
            continue
        if kind == "loop":
            print(loop(works[0], until), flush=True)
            continue
        counts = [(0, 0)] * threads
        start = time.monotonic()

        def part(index: int, until: float = until, counts: list[tuple[int, int]] = counts) -> None:
            counts[index] = flood(works[index], each[index], until, chunk)

        others = [threading.Thread(target=part, args=(index,)) for index in range(threads)]
        for thread in others:
            thread.start()
        for thread in others:
            thread.join()
        in_time, in_all = (sum(column) for column in zip(*counts, strict=True))
        print(in_time, in_all, time.monotonic() - start, flush=True)


if __name__ == "__main__":
    main()
