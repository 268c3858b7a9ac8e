"""Programs that train on a server, in processes of their own, for tests that disturb them."""

import itertools
import subprocess
import sys
import threading
import time
from pathlib import Path

from processes import cluster

#: Trains for some steps; says each hundredth, and a hash of all state in the end.
TRAINING = """
import hashlib, sys
import numpy as np
import gt
from gt import nn, optim

gt.connect(sys.argv[1])
data = np.random.default_rng(0)
inputs = gt.from_numpy(data.standard_normal((256, 64)).astype("float32"))
labels = gt.from_numpy(data.integers(0, 10, 256))
gt.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 10))
optimizer = optim.Adam(model.parameters(), lr=1e-3)
for step in range(int(sys.argv[2])):
    if step % 100 == 0:
        print("step", step, flush=True)
    at = slice(step * 64 % 256, step * 64 % 256 + 64)
    loss = nn.functional.cross_entropy(model(inputs[at]), labels[at])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        loss.item()
state = [value.detach() for value in model.parameters()] + [gt.randn(8), loss.detach()]
for one in optimizer.state_dict()["state"].values():
    state += [value for value in one.values() if isinstance(value, gt.Tensor)]
print("hash", hashlib.sha256(b"".join(value.numpy().tobytes() for value in state)).hexdigest())
"""

#: As above, of a model whose data is cut over the workers.
SHARDED = TRAINING.replace(
    "gt.manual_seed(0)",
    """
gt.register_config("cut", gt.SignalConfig(gt.ShardConfig(axis=0)))
with gt.signal.context("cut"):
    inputs, labels = inputs * 1, labels * 1
gt.manual_seed(0)""",
)


#: As above, of a small transformer that learns the next character of a text.
GPT = """
import hashlib, sys
import numpy as np
import gt
from gt import nn, optim

gt.connect(sys.argv[1])
F = nn.functional
text = np.frombuffer(b"to be, or not to be, that is the question: " * 40, dtype="uint8")
vocabulary, data = np.unique(text, return_inverse=True)
data = gt.from_numpy(data.astype("int64"))
WIDTH, LENGTH, BATCH = 32, 16, 8
gt.manual_seed(0)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.mix = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 64), nn.GELU(), nn.Linear(64, WIDTH))

    def forward(self, x):
        heads = [part.reshape(BATCH, LENGTH, 2, WIDTH // 2).transpose(1, 2)
                 for part in self.mix(self.norms[0](x)).chunk(3, -1)]
        mixed = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))
        return x + F.dropout(self.feed(self.norms[1](x)), 0.1)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.names = nn.Embedding(len(vocabulary), WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(WIDTH, len(vocabulary))

    def forward(self, ids):
        x = self.names(ids) + self.places(gt.arange(LENGTH))
        return self.head(self.blocks(x))


model = Model()
optimizer = optim.AdamW(model.parameters(), lr=1e-3)
for step in range(int(sys.argv[2])):
    if step % 100 == 0:
        print("step", step, flush=True)
    at = [(step * 37 + 101 * row) % (len(text) - LENGTH - 1) for row in range(BATCH)]
    ids = gt.stack([data[start : start + LENGTH] for start in at])
    labels = gt.stack([data[start + 1 : start + LENGTH + 1] for start in at])
    loss = F.cross_entropy(model(ids).reshape(BATCH * LENGTH, -1), labels.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        loss.item()
state = [value.detach() for value in model.parameters()] + [gt.randn(8), loss.detach()]
print("hash", hashlib.sha256(b"".join(value.numpy().tobytes() for value in state)).hexdigest())
"""


def start_worker(address: str, name: str, *options: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "gt.worker", "--address", address, "--id", name, *options]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = worker.stdout.readline()
    assert line.startswith("gt worker"), (line, worker.stderr.read())
    return worker


def start_server(address: str, state: Path, *options: str) -> subprocess.Popen:
    """Start a server at an address, from its state if it has one."""
    port = address.rpartition(":")[2]
    command = [sys.executable, "-m", "gt.server", "-p", port, "--state", str(state), *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = server.stdout.readline()
    assert line.startswith("gt server"), (line, server.stderr.read())
    return server


class Training:
    """A program in a process of its own."""

    def __init__(self, code: str, *args: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, args)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        self.times: list[float] = []
        self.errors: list[str] = []
        self.threads = [
            threading.Thread(target=self._read),
            threading.Thread(target=lambda: self.errors.extend(self.process.stderr)),
        ]
        for thread in self.threads:
            thread.start()

    def _read(self) -> None:
        for line in iter(self.process.stdout.readline, ""):
            self.lines.append(line)
            self.times.append(time.monotonic())

    def longest_gap(self) -> float:
        """Give the longest time between two lines."""
        return max(after - before for before, after in itertools.pairwise(self.times))

    def wait_for(self, step: int) -> None:
        until = time.monotonic() + 60
        while f"step {step}\n" not in self.lines:
            assert time.monotonic() < until and self.process.poll() is None, self.errors
            time.sleep(0.005)

    def end(self, limit: float = 60) -> str:
        """Give the last line, which comes within so many seconds."""
        assert self.process.wait(limit) == 0, self.errors
        self._close()
        return self.lines[-1]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._close()

    def _close(self) -> None:
        for thread in self.threads:
            thread.join()
        self.process.stdout.close()
        self.process.stderr.close()


def undisturbed(code: str, workers: int, steps: int) -> str:
    with cluster(workers) as (address, _):
        training = Training(code, address, steps)
        result = training.end(60 + steps / 200)
        assert training.errors == []
        return result
