"""Habits of PyTorch users work in GT: each habit is a small program.

A program takes the library as `torch`; `nn/test_habits_with_torch.py` runs the same with PyTorch.
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


def test_errors_of_load_state_dict_suggest_similar_names():
    with pytest.raises(RuntimeError) as caught:
        state_of_another_shape(gt)
    message = str(caught.value)
    assert "hint: '2.weight' may be '2.weihgt' in the state" in message
    assert message.index("2.weihgt") < message.index("size mismatch for 0.weight")
    assert "strict=False" in message
