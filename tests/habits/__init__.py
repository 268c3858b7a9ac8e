"""Habits of PyTorch's users: small programs that get the library as the argument `torch`.

Their assertions hold in both libraries; their results are compared between the two.
"""

from importlib import import_module

import pytest

FILES = ("tensors", "modules", "layers", "training", "optimizers", "data")
PROGRAMS = ("language", "images", "policies")
pytest.register_assert_rewrite(*(f"habits.{name}" for name in (*FILES, *PROGRAMS)))

from habits.lines import LINES, run  # noqa: E402, F401
from habits.mistakes import MISTAKES  # noqa: E402, F401


def name_of(habit):
    """Return a habit's name, prefixed with the name of its file."""
    return f"{habit.__module__.split('.')[-1]}-{habit.__name__.removeprefix('habit_')}"


def _habits():
    for name in (*FILES, *PROGRAMS):
        file = import_module(f"habits.{name}")
        yield from (of for name, of in vars(file).items() if name.startswith("habit_"))


HABITS = list(_habits())
