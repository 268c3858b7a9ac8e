"""One side of the sharding benchmarks: two workers, or PyTorch's DTensor on two Gloo ranks.

usage: sharding.py dtensor|embedded|HOST:PORT

Reads a name from each line, runs it, and answers with a line of JSON: the median time of one use in
microseconds. Every round fetches and checks its results.
"""

import json
import os
import subprocess
import sys
import time
from typing import Any

import numpy as np

SIDE = sys.argv[1]
RANK = int(os.environ.get("RANK", "0"))
RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((64, 784)).astype("float32")
Y = RANDOM.standard_normal((64, 10)).astype("float32")
WEIGHTS = [
    (RANDOM.standard_normal(shape) * scale).astype("float32")
    for shape, scale in (((256, 784), 0.03), ((256,), 0.03), ((10, 256), 0.06), ((10,), 0.06))
]
SMALL = RANDOM.standard_normal(8).astype("float32")


def loss_of(x, y, w1, b1, w2, b2):
    difference = (x @ w1.T + b1).relu() @ w2.T + b2 - y
    return (difference * difference).mean()


if SIDE == "dtensor":
    import torch
    from torch.distributed import init_process_group
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    torch.set_num_threads(1)
    other: Any = None  # the process of rank 1
    if RANK == 0:
        environment = {**os.environ, "RANK": "1"}
        other = subprocess.Popen(
            [sys.executable, *sys.argv], env=environment, stdin=subprocess.PIPE, text=True
        )
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29612", WORLD_SIZE="2", RANK=str(RANK))
    init_process_group("gloo")
    MESH = init_device_mesh("cpu", (2,))

    def placed(array, placement):
        return distribute_tensor(torch.from_numpy(array), MESH, [placement])

    x, y = placed(X, Shard(0)), placed(Y, Shard(0))
    parameters = [placed(weight, Replicate()).detach().requires_grad_() for weight in WEIGHTS]
    optimizer = torch.optim.SGD(parameters, lr=1e-4)
    small = placed(SMALL, Shard(0))

    def whole(tensor):
        return tensor.full_tensor().detach().numpy()

    scope = None
else:
    import gt

    if SIDE == "embedded":
        gt.gpu_workers(2)
    else:
        gt.connect(SIDE)
    gt.register_config("batch", gt.SignalConfig(gt.ShardConfig(axis=0)))
    gt.register_config("copies", gt.SignalConfig(gt.ShardConfig(replicated=True)))
    gt.register_config("last", gt.SignalConfig(gt.ShardConfig(replicated=True, workers=[1])))
    with gt.signal.context("batch"):
        x, y, small = gt.from_numpy(X), gt.from_numpy(Y), gt.from_numpy(SMALL)
    with gt.signal.context("copies"):
        parameters = [gt.from_numpy(weight).requires_grad_() for weight in WEIGHTS]
    optimizer = gt.optim.SGD(parameters, lr=1e-4)

    def whole(tensor):
        return tensor.numpy()


LAST = [float("inf")]


def mlp(steps=20):
    for _ in range(steps):
        if SIDE == "dtensor":
            loss = loss_of(x, y, *parameters)
        else:
            with gt.signal.context("batch"):
                loss = loss_of(x, y, *parameters)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    value = float(whole(loss))
    assert value < LAST[0] * 1.01, "training makes progress"
    LAST[0] = value


def add():
    c = small
    for _ in range(1000):
        c = c + small
    assert np.allclose(whole(c), SMALL * 1001, rtol=1e-3)


BIG: dict = {}


def product():
    """Multiply 4096 x 4096 matrices, the left one sharded by rows over the workers."""
    if not BIG:
        with gt.signal.context("batch"):
            BIG["left"] = gt.rand(4096, 4096)
        with gt.signal.context("copies"):
            BIG["right"] = gt.rand(4096, 4096)
    result = BIG["left"] @ BIG["right"]
    assert 900 < result[::1023, 5].sum().item() / 5 < 1150


def move():
    """Transfer 256 MB from worker 0 to worker 1; return the seconds."""
    if "moved" not in BIG:
        BIG["moved"] = gt.rand(64, 1 << 20) + 0.0
        assert 0 <= BIG["moved"][3, 7].item() < 1
    start = time.perf_counter()
    copy = gt.signal.tensor(BIG["moved"], name="last")
    with gt.signal.context("last"):
        assert 0 <= (copy[63, -1:] + 0).item() < 1
    BIG["seconds"] = time.perf_counter() - start
    # A new tensor, so that the next call transfers it again.
    BIG["moved"] = BIG["moved"] + 0.0
    BIG["moved"][0, 0].item()
    return BIG["seconds"]


def memcpy():
    """Copy 256 MB in this process, into memory that is already mapped; return the seconds."""
    if "array" not in BIG:
        BIG["array"], BIG["target"] = np.ones(1 << 26, "float32"), np.zeros(1 << 26, "float32")
    start = time.perf_counter()
    np.copyto(BIG["target"], BIG["array"])
    return time.perf_counter() - start


#: name: (function, uses in one call, calls in one round)
WORK = {
    "mlp": (mlp, 20, 5),
    "add": (add, 1000, 5),
    "product": (product, 1, 3),
    "move": (move, 1, 3),
    "memcpy": (memcpy, 1, 3),
}


def round_of(name: str) -> float:
    """Return the median seconds of one use."""
    function, uses, repeats = WORK[name]
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        own = function()
        times.append(own or time.perf_counter() - start)
    return sorted(times)[len(times) // 2] / uses


if RANK == 0:
    print("ready", flush=True)
for line in sys.stdin:
    if SIDE == "dtensor" and RANK == 0:
        other.stdin.write(line)
        other.stdin.flush()
    seconds = round_of(line.strip())
    if RANK == 0:
        print(json.dumps({"us": seconds * 1e6}), flush=True)
if SIDE == "dtensor":
    if RANK == 0:
        other.stdin.close()
        other.wait(timeout=20)
    torch.distributed.destroy_process_group()
