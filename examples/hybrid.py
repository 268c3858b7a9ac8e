"""Hybrid: data x tensor parallel on a mesh of two by two workers, in one scope.

The mesh has two axes. Batches are sharded over `data`, weights over `model`; each worker has a
shard of both.
"""

import gt
from gt import ShardConfig, SignalConfig, nn
from sharding import Scope, compare, digits, train_steps

MESH = {"data": 2, "model": 2}

gt.gpu_workers(4)
gt.register_config("batch", SignalConfig(ShardConfig(mesh=MESH, axis={"data": 0})))
gt.register_config("columns", SignalConfig(ShardConfig(mesh=MESH, axis={"model": 0})))
gt.register_config("rows", SignalConfig(ShardConfig(mesh=MESH, axis={"model": 1})))


class Attention(nn.Module):
    """One head of attention over the rows of an image."""

    def __init__(self, scope: Scope, width: int):
        super().__init__()
        with scope("columns"):
            self.mixed = nn.Linear(width, 3 * width)
        with scope("rows"):
            self.out = nn.Linear(width, width)
        self.width = width

    def forward(self, x: gt.Tensor) -> gt.Tensor:
        """Return x (batch, rows, width) with the output of attention between rows added."""
        query, key, value = self.mixed(x).chunk(3, dim=-1)
        scores = (query @ key.mT) * self.width**-0.5
        return x + self.out(scores.softmax(-1) @ value)


class Transformer(nn.Module):
    """A digit as a sequence of its 8 rows."""

    def __init__(self, scope: Scope):
        super().__init__()
        with scope("columns"):
            self.embed = nn.Linear(8, 32)
        self.attention = Attention(scope, 32)
        with scope("columns"):
            self.up = nn.Linear(32, 128)
        with scope("rows"):
            self.down = nn.Linear(128, 32)
        self.head = nn.Linear(32, 10)

    def forward(self, images: gt.Tensor) -> gt.Tensor:
        """Return a score for each digit."""
        x = self.attention(self.embed(images.reshape(-1, 8, 8)))
        x = x + self.down(nn.functional.gelu(self.up(x)))
        return self.head(x.mean(1))


def train(scope: Scope) -> list[float]:
    """Train on digits; return the loss of each step."""
    model = Transformer(scope)
    optimizer = gt.optim.AdamW(model.parameters(), lr=1e-2)
    with scope("batch"):
        images, labels = digits(256)

    def loss(step: int) -> gt.Tensor:
        with scope("batch"):
            return nn.cross_entropy_loss(model(images), labels)

    return train_steps(loss, optimizer, 25)


compare(train, "data x tensor parallel on 2 x 2 workers")
