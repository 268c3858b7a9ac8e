"""Signal configurations from Python, alone or beside a YAML file."""

from pathlib import Path

import gt
from gt import ShardConfig, SignalConfig


def configure(batch_size: int) -> None:
    """Choose workers by the size of a batch."""
    workers = [0, 1, 2, 3] if batch_size >= 256 else [0, 1]
    shard = ShardConfig(axis=0, workers=workers)
    gt.register_config("training", SignalConfig(shard=shard, backward_signal="training_backward"))


gt.load_config(Path(__file__).with_name("config_sharding.yaml"))
for batch_size in (64, 512):
    configure(batch_size)
    config = gt.get_signal_config("training")
    print(f"batch of {batch_size}: workers {config.shard.workers}")
    with gt.signal.context("training"):
        batch = gt.randn(batch_size, 16)
        print("  gradients under:", gt.signal.current_backward_signal())
        print("  mean:", round(batch.mean().item(), 4))

print("signals:", sorted(gt.get_config().signals))
