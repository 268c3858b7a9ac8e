"""A program whose session is recorded, or not: runs a round for each line of its input.

Arguments: the server, or "-" for a session in this process. Each answer has two numbers for each
work: its time, and the time on processors of this process, in microseconds.
"""

import sys
import time
from collections.abc import Callable

import gt

#: How often a round repeats each work: in this process, and on a server.
COUNTS = {True: (50_000, 20_000, 300), False: (50_000, 1_000, 200)}


def main() -> None:
    """Answer lines until the input ends."""
    if sys.argv[1] != "-":
        gt.connect(sys.argv[1])
    gt.manual_seed(0)
    model = gt.nn.Sequential(gt.nn.Linear(64, 128), gt.nn.ReLU(), gt.nn.Linear(128, 10))
    optimizer = gt.optim.SGD(model.parameters(), lr=0.01)
    inputs, labels = gt.randn(128, 64), gt.arange(128) % 10

    def steps(count: int) -> None:
        for _ in range(count):
            loss = gt.nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            assert loss.item() > 0

    print("ready", flush=True)
    for _ in sys.stdin:
        works = zip((add, read, steps), COUNTS[sys.argv[1] == "-"], strict=True)
        numbers = [number for work, count in works for number in timed(work, count)]
        print(*(f"{number:.3f}" for number in numbers), flush=True)


def timed(run: Callable[[int], None], count: int) -> tuple[float, float]:
    """Return the microseconds of one of `count` repetitions: of time, and of processors."""
    busy, start = time.process_time(), time.perf_counter()
    run(count)
    elapsed, used = time.perf_counter() - start, time.process_time() - busy
    return elapsed / count * 1e6, used / count * 1e6


def add(count: int) -> None:
    """Compute a chain of small additions."""
    x = gt.ones(8)
    for _ in range(count):
        x = x + 1
    assert x.sum().item() == 8 * (count + 1)


def read(count: int) -> None:
    """Compute small additions, and read the value of each."""
    x = gt.ones(())
    for number in range(count):
        x = x + 1
        assert x.item() == number + 2


if __name__ == "__main__":
    main()
