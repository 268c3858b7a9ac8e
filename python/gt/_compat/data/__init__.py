"""Datasets, samplers and loaders, with the names and semantics of `torch.utils.data`.

    >>> import gt
    >>> images, labels = gt.rand(10, 3), gt.randint(0, 2, (10,))
    >>> loader = gt.data.DataLoader(gt.data.TensorDataset(images, labels), batch_size=4)
    >>> [tuple(x.shape) for x, y in loader]
    [(4, 3), (4, 3), (2, 3)]

Nothing here needs PyTorch; PyTorch's datasets and loaders are accepted unchanged. Beyond PyTorch:
the position of a `DataLoader` can be saved and restored (`state_dict`), and `prefetch` loads and
transfers the next batches of any iterable while the program computes with the current one.

Modules: `datasets`, `samplers`, `order` (orders that follow from a seed), `collate`, `convert`
(arrays to tensors), `fetch` (samples to batches), `loader`, `iteration` (one pass), `position`,
`pool` and `worker` (processes), `transport` (batches between processes), `prefetching`,
`arguments` (checks).
"""

from gt._public import show_callers

from .collate import default_collate, default_convert
from .datasets import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .fetch import get_worker_info
from .loader import DataLoader
from .prefetching import prefetch
from .samplers import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "prefetch",
    "random_split",
]

show_callers(globals())
