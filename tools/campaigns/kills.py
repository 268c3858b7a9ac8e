"""Train while workers and the server are killed with `kill -9`, alone, in pairs and all at once.

    python tools/campaigns/kills.py --rounds 50 --seed 0 --steps 60000

Each process has a folder for its state and is restarted at once. The program must end with the
parameters of an undisturbed run, bit for bit.
"""

import argparse
import collections
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))
from power_cut import Cluster, durable
from training import SHARDED, Training, undisturbed

WORKERS = 3
#: The indices of the processes that are killed together; the server is 0. All copies of a value may
#: be lost only if every process dies: then server and workers restore them from their folders.
KINDS = {
    "a worker": lambda choose: [choose(range(1, 1 + WORKERS))],
    "the server": lambda choose: [0],
    "the server and a worker": lambda choose: [0, choose(range(1, 1 + WORKERS))],
    "all": lambda choose: list(range(1 + WORKERS)),
}


def kill(running: Cluster, indices: list[int]) -> None:
    """Kill these processes together, and restart them."""
    for index in indices:
        running.processes[index].kill()
    for index in indices:
        running.errors += running.processes[index].communicate(timeout=20)[1]
    for index in sorted(indices):
        running.processes[index] = running.start_one(index)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=60_000)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    counts: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as place, durable(WORKERS, Path(place)) as running:
        training = Training(SHARDED, running.address, arguments.steps)
        training.wait_for(100)
        while counts.total() < arguments.rounds and training.process.poll() is None:
            # Some kills hit while the cluster recovers from the one before.
            time.sleep(chance.choice([0.3, 1.0, 2.0]) * chance.random() + 0.2)
            kind = chance.choice(list(KINDS))
            counts[kind] += 1
            kill(running, KINDS[kind](chance.choice))
        done = counts.total()
        got = training.end(600)
    expected = undisturbed(SHARDED, WORKERS, arguments.steps)
    each = ", ".join(f"{kind}: {count}" for kind, count in counts.items())
    print(f"{done} rounds ({each}): {'the same bits' if got == expected else 'OTHER BITS'}")
    if done < arguments.rounds:
        print(f"the program ended after {done} of {arguments.rounds} rounds: use more --steps")
    return int(got != expected or done < arguments.rounds)


if __name__ == "__main__":
    sys.exit(main())
