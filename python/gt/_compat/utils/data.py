"""`gt.data` under its name in PyTorch: the same module, and its modules under PyTorch's names."""

import sys

from gt import data
from gt._paths import add_modules
from gt.data import *  # noqa: F403

sys.modules[__name__] = data
add_modules(
    __name__,
    {
        "dataloader": "gt.data.loader gt.data.collate gt.data.samplers",
        "dataset": "gt.data.datasets",
        "distributed": "gt.data.samplers",
        "sampler": "gt.data.samplers",
        "_utils": "gt.data.collate",
        "_utils.collate": "gt.data.collate",
    },
    parent=data,
)
