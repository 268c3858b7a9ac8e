"""Wrappers of programs written for several GPUs or processes; here signals shard tensors."""

from gt._public import show_callers

from .data_parallel import DataParallel, data_parallel
from .distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]


show_callers(globals())
