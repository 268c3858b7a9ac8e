"""Checks of the arguments of `DataLoader`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from numbers import Integral
from typing import Any

from gt._arguments import brief
from gt._lines import warn


def check_sources(dataset: Any, sampler: Any, batch_sampler: Any) -> None:
    """Check that samples can be read, and that samplers can be iterated over.

    Raises:
        TypeError: the dataset has no samples, or a sampler yields nothing.
    """
    if not any(hasattr(dataset, name) for name in ("__getitem__", "__getitems__", "__iter__")):
        raise TypeError(
            f"dataset is {brief(dataset)}, expected a Dataset, a list, or what a loop iterates over"
        )
    for name, value in (("sampler", sampler), ("batch_sampler", batch_sampler)):
        if value is not None and not isinstance(value, Iterable):
            raise TypeError(f"{name} is {brief(value)}, expected a Sampler or an iterable")


def check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent: bool
) -> None:
    """Check the arguments that concern workers.

    Raises:
        TypeError: the number of workers is not an integer.
        ValueError: a number is out of range, or an option is given that needs workers.
    """
    if not isinstance(num_workers, Integral):
        raise TypeError(f"num_workers is {brief(num_workers)}, expected an integer")
    if num_workers < 0:
        raise ValueError(
            f"num_workers option should be non-negative, but got {num_workers}; "
            "use num_workers=0 to disable multiprocessing."
        )
    if timeout < 0:
        raise ValueError(f"timeout option should be non-negative, but got {timeout}")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing. "
            "Let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 1:
        raise ValueError(f"prefetch_factor option should be positive, but got {prefetch_factor}")
    if persistent and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def check_unspecified(options: dict[str, Any]) -> None:
    """Check that options which a stream does not support are None.

    Raises:
        ValueError: an option is not None.
    """
    for name, value in options.items():
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, "
                f"but got {name}={value}"
            )


def start_method(given: Any, workers: int) -> Any:
    """Return the `multiprocessing` context of an argument; None for Python's default.

    Raises:
        TypeError: the argument is neither a name nor a context.
        ValueError: there is no start method of this name, or no workers to start.
    """
    if given is None:
        return None
    if not workers:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading "
            "(num_workers > 0), but got num_workers=0"
        )
    import multiprocessing

    if isinstance(given, str):
        methods = multiprocessing.get_all_start_methods()
        if given not in methods:
            raise ValueError(
                "multiprocessing_context option should specify a valid start method in "
                f"{methods}, but got multiprocessing_context={given!r}"
            )
        given = multiprocessing.get_context(given)
    if not isinstance(given, multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string "
            f"specifying the start method, but got multiprocessing_context={given}"
        )
    return given


def warn_of_many(workers: int) -> None:
    """Warn if there are more workers than processor cores."""
    able = getattr(os, "sched_getaffinity", None)
    cores = len(able(0)) if able else os.cpu_count() or 1
    if workers > cores:
        warn(
            f"This DataLoader will create {workers} worker processes in total, but this process "
            f"has {cores} processor cores: loading may be slow\n  hint: num_workers={cores}",
        )
