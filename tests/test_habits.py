"""What users of PyTorch do without thinking works: each habit is a small program.

The programs take the library as `torch`; `nn/test_habits_with_torch.py` runs the same in PyTorch.
"""

import gt
import habits
import pytest
from habits.mistakes import state_of_another_shape


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


def test_states_that_do_not_fit_are_told_with_what_is_near():
    with pytest.raises(RuntimeError) as caught:
        state_of_another_shape(gt)
    told = str(caught.value)
    assert "hint: '2.weight' may be '2.weihgt' in the state" in told
    assert told.index("2.weihgt") < told.index("size mismatch for 0.weight")
    assert "strict=False" in told
