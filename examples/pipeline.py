"""Pipeline parallel: four stages on two workers each, microbatches in a 1F1B schedule.

Every stage has its own scope; activations are redistributed from the workers of one stage to those
of the next. When as many microbatches are in flight as there are stages, forward and backward
passes alternate (1F1B), so that activations of at most four microbatches are kept.
"""

import gt
from gt import ShardConfig, SignalConfig, nn
from sharding import Scope, compare, digits

STAGES, MICROBATCHES = 4, 8

gt.gpu_workers(2 * STAGES)
for stage in range(STAGES):
    workers = [2 * stage, 2 * stage + 1]
    gt.register_config(f"stage {stage}", SignalConfig(ShardConfig(axis=0, workers=workers)))
    shard = ShardConfig(replicated=True, workers=workers)
    gt.register_config(f"weights {stage}", SignalConfig(shard))


def train(scope: Scope) -> list[float]:
    """Train on digits; return the loss of each step."""
    sizes = [64, 96, 96, 96, 10]
    stages: list[nn.Linear] = []
    for stage in range(STAGES):
        with scope(f"weights {stage}"):
            stages.append(nn.Linear(sizes[stage], sizes[stage + 1]))
    parameters = [parameter for stage in stages for parameter in stage.parameters()]
    optimizer = gt.optim.Adam(parameters, lr=0.005)
    images, labels = digits(256)

    def forward(microbatch: int) -> gt.Tensor:
        rows = slice(microbatch * 32, (microbatch + 1) * 32)
        x = images[rows]
        for number, stage in enumerate(stages):
            with scope(f"stage {number}"):
                x = stage(x) if number == STAGES - 1 else stage(x).relu()
        with scope(f"stage {STAGES - 1}"):
            return nn.cross_entropy_loss(x, labels[rows]) / MICROBATCHES

    losses: list[gt.Tensor] = []
    for _ in range(20):
        under_way: list[gt.Tensor] = []
        total: list[gt.Tensor] = []
        for microbatch in range(MICROBATCHES):
            under_way.append(forward(microbatch))
            if len(under_way) == STAGES:
                total.append(backward(under_way))
        while under_way:
            total.append(backward(under_way))
        optimizer.step()
        optimizer.zero_grad()
        losses.append(gt.stack(total).sum())
    return gt.stack(losses).tolist()


def backward(under_way: list[gt.Tensor]) -> gt.Tensor:
    """Run the backward pass of the oldest microbatch; return its loss."""
    loss = under_way.pop(0)
    loss.backward()
    return loss.detach()


compare(train, f"pipeline of {STAGES} stages on {2 * STAGES} workers")
