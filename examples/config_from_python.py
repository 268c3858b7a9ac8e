"""Signal configurations from Python: placement is decided while the program runs.

Configurations from Python can be combined with those of a YAML file, and may change: here, small
batches are sharded over two workers and large ones over four.
"""

from pathlib import Path

import gt
from gt import ShardConfig, SignalConfig, nn
from sharding import Scope, compare, digits, train_steps

gt.gpu_workers(4)
gt.load_config(Path(__file__).with_name("config_sharding.yaml"))
gt.register_config("parameters", SignalConfig(ShardConfig(replicated=True)))


def configure(batch_size: int) -> None:
    """Choose workers by the batch size."""
    workers = [0, 1, 2, 3] if batch_size >= 256 else [0, 1]
    shard = ShardConfig(axis=0, workers=workers)
    gt.register_config("training", SignalConfig(shard=shard, backward_signal="training_backward"))
    gt.register_config("training_backward", SignalConfig(shard=shard))


def train(scope: Scope) -> list[float]:
    """Train on digits in batches of two sizes; return the loss of each step."""
    with scope("parameters"):
        model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = gt.optim.Adam(model.parameters(), lr=0.01)

    def loss(step: int) -> gt.Tensor:
        batch_size = 64 if step < 10 else 512
        configure(batch_size)
        with scope("training"):
            images, labels = digits(batch_size)
            return nn.cross_entropy_loss(model(images), labels)

    return train_steps(loss, optimizer, 20)


compare(train, "configured from Python")
print("signals:", sorted(gt.get_config().signals))
