"""A program whose session is recorded, or not: runs a round for each line of its input.

Arguments: the server, or "-" for a session in this process. Each answer is the time of each work in
microseconds.
"""

import sys
import time

import gt

ADDITIONS, READS, STEPS = 20_000, 2_000, 200


def main() -> None:
    """Answer lines until the input ends."""
    if sys.argv[1] != "-":
        gt.connect(sys.argv[1])
    gt.manual_seed(0)
    model = gt.nn.Sequential(gt.nn.Linear(64, 128), gt.nn.ReLU(), gt.nn.Linear(128, 10))
    optimizer = gt.optim.SGD(model.parameters(), lr=0.01)
    inputs, labels = gt.randn(128, 64), gt.arange(128) % 10

    def step() -> None:
        loss = gt.nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        last.append(loss)

    last: list[gt.Tensor] = []
    print("ready", flush=True)
    for _ in sys.stdin:
        times = []
        x, start = gt.ones(8), time.perf_counter()
        for _ in range(ADDITIONS):
            x = x + 1
        assert x.sum().item() == 8 * (ADDITIONS + 1)
        times.append((time.perf_counter() - start) / ADDITIONS)
        start = time.perf_counter()
        x = gt.ones(())
        for number in range(READS):
            x = x + 1
            assert x.item() == number + 2
        times.append((time.perf_counter() - start) / READS)
        start = time.perf_counter()
        for _ in range(STEPS):
            step()
            assert last[-1].item() > 0
            last.clear()
        times.append((time.perf_counter() - start) / STEPS)
        print(*(f"{seconds * 1e6:.3f}" for seconds in times), flush=True)


if __name__ == "__main__":
    main()
