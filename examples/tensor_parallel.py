"""Tensor parallel: a layer's weights are sharded over workers, as in Megatron.

The first layer is sharded along its outputs ("columns"), the second along its inputs ("rows"): no
communication is needed between the two, and the result is a partial sum on each worker.
"""

import gt
from gt import ShardConfig, SignalConfig, nn
from sharding import Scope, compare, digits, train_steps

gt.gpu_workers(2)
# A Linear's weight is out x in: its outputs are axis 0, its inputs axis 1.
gt.register_config("columns", SignalConfig(ShardConfig(axis=0)))
gt.register_config("rows", SignalConfig(ShardConfig(axis=1)))
gt.register_config("everywhere", SignalConfig(ShardConfig(replicated=True)))


class Block(nn.Module):
    """x + W2 gelu(W1 x), the feed-forward part of a transformer."""

    def __init__(self, scope: Scope, width: int, hidden: int):
        super().__init__()
        with scope("columns"):
            self.up = nn.Linear(width, hidden)
        with scope("rows"):
            self.down = nn.Linear(hidden, width)

    def forward(self, x: gt.Tensor) -> gt.Tensor:
        """Return x (batch, width) with the block's output added."""
        return x + self.down(nn.functional.gelu(self.up(x)))


def train(scope: Scope) -> list[float]:
    """Train on digits; return the loss of each step."""
    model = nn.Sequential(Block(scope, 64, 512), Block(scope, 64, 512), nn.Linear(64, 10))
    optimizer = gt.optim.Adam(model.parameters(), lr=1e-3)
    images, labels = digits(128)

    def loss(step: int) -> gt.Tensor:
        with scope("everywhere"):
            return nn.cross_entropy_loss(model(images), labels)

    return train_steps(loss, optimizer, 15)


compare(train, "tensor parallel on 2 workers")
