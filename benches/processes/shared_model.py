"""One program of the benchmark of a shared model: its publisher, or one of its users.

usage: shared_model.py HOST:PORT NAME GIGABYTES

NAME is `publisher`, `small` or a kind of work of examples/users. Reads a line for each round:

- `steps SECONDS`: compute steps for that long; answers with their number and the seconds.
- `numbers COUNT`: compute steps, and answer with the number of each, a line for each.
- `ask SECONDS`: request a small value every 10 ms; answers with the milliseconds of each.
- `product`: answers with the milliseconds of the largest product of a step.
"""

import statistics
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import gt

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
sys.path += [str(EXAMPLES), str(EXAMPLES / "models")]
from gpt2 import GPT2  # noqa: E402
from users import KINDS  # noqa: E402
from users.base import Work, make_model  # noqa: E402

MODEL, LAYERS, WORK = "shared-model", 12, Work()


def width_of(gigabytes: float) -> int:
    """Return the width of a model of about this size, in float32."""
    return max(64, round((gigabytes * 1e9 / 4 / 12 / LAYERS) ** 0.5 / 64) * 64)


def publish(width: int) -> None:
    """Publish a model; return once it can be read."""
    gt.manual_seed(0)
    gt.shared(gt.publish(MODEL, make_model(width, LAYERS), to="all"))


def read(width: int) -> GPT2:
    """Return the published model."""
    model = make_model(width, LAYERS)
    gt.shared(MODEL, into=model)
    return model


def ask(work: Callable[[], float], until: float) -> list[float]:
    """Request a value every 10 ms; return the milliseconds that each took."""
    times = []
    while time.monotonic() < until:
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1e3)
        time.sleep(0.01)
    return times


def serve_small(width: int) -> None:
    """Answer as a user whose requests are small."""
    state = gt.shared(MODEL)
    weight, bias = (state[f"transformer.ln_f.{name}"] for name in ("weight", "bias"))
    product = state["transformer.h.0.mlp.c_fc.weight"]
    x = gt.ones(WORK.batch * WORK.length, width)
    print("ready", flush=True)
    for line in sys.stdin:
        if line == "product\n":
            times = ask(lambda: (x @ product)[0, 0].item(), time.monotonic() + 1)
            print(statistics.median(times), flush=True)
        else:
            until = time.monotonic() + float(line.split()[1])
            print(*ask(lambda: (weight + bias).sum().item(), until), flush=True)


def serve_kind(name: str, width: int) -> None:
    """Answer as a user with a kind of work."""
    model, seed = read(width), list(KINDS).index(name)
    gt.manual_seed(seed)
    values = KINDS[name](model, Work(seed))
    # The first steps compile.
    next(values).item()
    print("ready", flush=True)
    for line in sys.stdin:
        what, amount = line.split()
        if what == "numbers":
            for value in islice(values, int(amount)):
                print(float(value.item()).hex(), flush=True)
        else:
            count, start = 0, time.monotonic()
            while time.monotonic() < start + float(amount):
                next(values).item()
                count += 1
            print(count, time.monotonic() - start, flush=True)


def main() -> None:
    """Read the arguments, and serve rounds until the input ends."""
    address, name, width = sys.argv[1], sys.argv[2], width_of(float(sys.argv[3]))
    gt.connect(address, name=name)
    if name == "publisher":
        publish(width)
        print("ready", flush=True)
        sys.stdin.read()
    elif name == "small":
        serve_small(width)
    else:
        serve_kind(name, width)


if __name__ == "__main__":
    main()
