"""What users of PyTorch do without thinking works: each habit is a small program.

The programs take the library as `torch`; `nn/test_habits_with_torch.py` runs the same in PyTorch.
"""

import gt
import habits
import pytest


@pytest.mark.parametrize("habit", habits.HABITS, ids=habits.name_of)
def test_habit(habit):
    habit(gt)


@pytest.mark.parametrize("line", habits.LINES)
@pytest.mark.filterwarnings("ignore")
def test_line(line):
    habits.run(gt, line)


@pytest.mark.parametrize("mistake", habits.MISTAKES, ids=lambda of: of.__name__)
def test_mistake(mistake):
    with pytest.raises(Exception, match=habits.MISTAKES[mistake]):
        mistake(gt)
