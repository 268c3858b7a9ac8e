"""Data parallel: each of four workers computes a part of every batch.

The parameters are replicated on all workers; their gradients are partial sums, which are combined
when the optimizer needs them.
"""

import gt
from gt import ShardConfig, SignalConfig, nn
from sharding import Scope, compare, digits, train_steps

gt.gpu_workers(4)
gt.register_config("batch", SignalConfig(ShardConfig(axis=0)))
gt.register_config("parameters", SignalConfig(ShardConfig(replicated=True)))


def train(scope: Scope) -> list[float]:
    """Train on digits; return the loss of each step."""
    with scope("parameters"):
        model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = gt.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with scope("batch"):
        images, labels = digits(512)

    def loss(step: int) -> gt.Tensor:
        with scope("batch"):
            return nn.cross_entropy_loss(model(images), labels)

    return train_steps(loss, optimizer, 20)


compare(train, "data parallel on 4 workers")
