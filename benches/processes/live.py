"""A client of a server for benches/live.py, which holds tensors or measures round trips.

Reads a command from each line and answers with a line: `hold N`, `steps SECONDS`, `loop SECONDS`,
`trips SECONDS`.
"""

import sys
import time

import gt


def until(seconds: float):
    """Yield the time at the start of each round, for a number of seconds."""
    end = time.perf_counter() + seconds
    while (now := time.perf_counter()) < end:
        yield now


def main() -> None:
    address = sys.argv[1]
    gt.connect(address)
    x = gt.ones(1)
    held = [x]
    x.item()
    print("ready", flush=True)
    for line in sys.stdin:
        command, amount = line.split()
        if command == "hold":
            while len(held) < int(amount):
                # Not a repeating sequence, so that each instruction is planned by itself.
                held.append(held[-1] + x if len(held) % 7919 else held[-1] * 0.5)
                if len(held) % 10_000 == 0:
                    held[-1].item()
            answer = str(held[-1].item())
        elif command == "steps":
            # The time of an instruction whose result replaces one of the held tensors.
            count, begin = 0, time.perf_counter()
            for _ in until(float(amount)):
                for _ in range(1000):
                    held[(count * 7919) % len(held)] = held[count % len(held)] * 0.5 + x
                    count += 1
                held[0].item()
            answer = str((time.perf_counter() - begin) / (2 * count))
        elif command == "loop":
            # The time of an instruction whose result is freed soon.
            y, count, begin = x, 0, time.perf_counter()
            for _ in until(float(amount)):
                for _ in range(1000):
                    y = y * 0.5 + x if count % 7919 else y + x
                    count += 1
                y.item()
            answer = str((time.perf_counter() - begin) / (2 * count))
        else:
            times = []
            for begin in until(float(amount)):
                (x + 1).item()
                times.append(time.perf_counter() - begin)
            answer = " ".join(map(str, times))
        print(answer, flush=True)


main()
