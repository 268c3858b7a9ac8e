"""Habits of PyTorch users have the same results in GT, and mistakes similar messages."""

import re
import warnings

import gt
import numpy as np
import pytest

torch = pytest.importorskip("torch")
import habits  # noqa: E402

#: Where PyTorch raises RuntimeError, GT may raise ValueError or TypeError for an argument.
ALIKE = {RuntimeError: {ValueError, TypeError}}


@pytest.mark.parametrize("habit", habits.HABITS, ids=habits.name_of)
def test_habits_have_the_results_of_pytorch(habit):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted, given = habit(torch), habit(gt)
    same(given, wanted)


@pytest.mark.parametrize("line", habits.LINES)
@pytest.mark.filterwarnings("ignore")
def test_lines_have_the_results_of_pytorch(line):
    same(habits.run(gt, line), habits.run(torch, line))


@pytest.mark.parametrize("mistake", habits.MISTAKES, ids=lambda of: of.__name__)
def test_mistakes_raise_similar_errors(mistake):
    theirs, ours = (error_of(mistake, library) for library in (torch, gt))
    words = habits.MISTAKES[mistake]
    assert type(ours) is type(theirs) or type(ours) in ALIKE.get(type(theirs), ())
    for error in (theirs, ours):
        assert words is None or re.search(words, str(error)), error


def error_of(mistake, library):
    """Return the error of a mistake."""
    with pytest.raises(Exception) as caught:
        mistake(library)
    return caught.value


def same(given, wanted):
    """Compare results of habits: floats by value, everything else exactly."""
    if isinstance(wanted, (list, tuple)):
        assert len(given) == len(wanted)
        for one, other in zip(given, wanted, strict=True):
            same(one, other)
    elif isinstance(wanted, dict):
        assert list(given) == list(wanted)
        same(list(given.values()), list(wanted.values()))
    elif isinstance(wanted, float):
        np.testing.assert_allclose(given, wanted, rtol=2e-4, atol=2e-5)
    else:
        assert given == wanted
