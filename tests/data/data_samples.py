"""Datasets and functions that worker processes import."""

import os
import random
import signal
import time

import numpy as np
from gt import data


class Squares(data.Dataset):
    """Numbers and their squares; `trouble` is called at the indices `at`."""

    def __init__(self, length=20, trouble=None, at=()):
        self.length, self.trouble, self.at = length, trouble, at

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if index in self.at:
            self.trouble(index)
        return {"x": np.full(3, index, np.float32), "square": index * index}


class Count(data.IterableDataset):
    """The numbers below a limit, distributed over the workers in turn."""

    def __init__(self, limit):
        self.limit = limit

    def __iter__(self):
        info = data.get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        return iter(range(first, self.limit, step))


class CountWithState(Count):
    """Numbers from a stream that can be restored, and then resumes at its position."""

    def __init__(self, limit):
        super().__init__(limit)
        self.done = 0

    def __iter__(self):
        for number in list(super().__iter__())[self.done :]:
            self.done += 1
            yield number
        self.done = 0

    def state_dict(self):
        return {"done": self.done}

    def load_state_dict(self, state):
        self.done = state["done"]


class Blocks(data.Dataset):
    """Large arrays, each filled with its index."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        return np.full((300, 400), index, np.float32), "name" * 20_000


class Rolls(data.Dataset):
    """Random numbers drawn in the worker."""

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return random.random(), np.random.rand(), data.get_worker_info().seed


class TwoArguments(Exception):
    """An exception whose constructor takes two arguments."""

    def __init__(self, one, two):
        super().__init__(one, two)


def raise_value_error(index):
    raise ValueError(f"sample {index} is bad")


def raise_key_error(index):
    raise KeyError("no such key")


def raise_two_arguments(index):
    raise TwoArguments(1, 2)


def be_killed(index):
    os.kill(os.getpid(), signal.SIGKILL)


def leave(index):
    os._exit(3)


def sleep_long(index):
    time.sleep(60)


def be_slow(index):
    time.sleep(0.05)


def give_lambda(batch):
    return lambda: batch


def plain_arrays(batch):
    return np.stack([sample["x"] for sample in batch])


def doubled(batch):
    batch = data.default_collate(batch)
    return {"x": batch["x"] * 2, "kind": type(batch["x"]).__name__}


def made_by_gt(batch):
    import gt

    return gt.tensor([sample["square"] for sample in batch], dtype="int64")


def fail_at_start(worker):
    raise OSError(f"worker {worker} has no file")


def set_limit(worker):
    data.get_worker_info().dataset.limit = 4 * (worker + 1)
