"""The habits are PyTorch's, with the same numbers; and its mistakes are told in like words."""

import re
import warnings

import gt
import numpy as np
import pytest

torch = pytest.importorskip("torch")
import habits  # noqa: E402

#: Where PyTorch says RuntimeError, GT says what is wrong with an argument: its value or its type.
ALIKE = {RuntimeError: {ValueError, TypeError}}


@pytest.mark.parametrize("habit", habits.HABITS, ids=habits.name_of)
def test_the_habit_is_that_of_pytorch(habit):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted, given = habit(torch), habit(gt)
    same(given, wanted)


@pytest.mark.parametrize("line", habits.LINES)
@pytest.mark.filterwarnings("ignore")
def test_the_line_gives_what_it_gives_in_pytorch(line):
    same(habits.run(gt, line), habits.run(torch, line))


@pytest.mark.parametrize("mistake", habits.MISTAKES, ids=lambda of: of.__name__)
def test_the_mistake_is_told_alike(mistake):
    theirs, ours = (error_of(mistake, library) for library in (torch, gt))
    words = habits.MISTAKES[mistake]
    assert type(ours) is type(theirs) or type(ours) in ALIKE.get(type(theirs), ())
    for error in (theirs, ours):
        assert words is None or re.search(words, str(error)), error


def error_of(mistake, library):
    """Give the error of a mistake."""
    with pytest.raises(Exception) as caught:
        mistake(library)
    return caught.value


def same(given, wanted):
    """Compare what a habit gave: numbers by value, everything else as it is."""
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
