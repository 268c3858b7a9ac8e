"""Train a perceptron; print steps, and a hash of parameters, optimizer state and random state."""

import gt
import numpy as np
from gt import nn, optim
from reporting import connect, print_hash, steps


def train(is_sharded: bool) -> None:
    """Train, with the data sharded over the workers or not."""
    args = connect()
    data = np.random.default_rng(0)
    inputs = gt.from_numpy(data.standard_normal((256, 64)).astype("float32"))
    labels = gt.from_numpy(data.integers(0, 10, 256))
    if is_sharded:
        gt.register_config("sharded", gt.SignalConfig(gt.ShardConfig(axis=0)))
        with gt.signal.context("sharded"):
            inputs, labels = inputs * 1, labels * 1
    gt.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 10))
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    for step in steps(args):
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
    print_hash(state)


if __name__ == "__main__":
    train(is_sharded=False)
