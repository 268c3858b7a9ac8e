"""Tests of datasets, which are compared with PyTorch's if it is installed."""

import gt
import numpy as np
import pytest
from data_samples import Count, Squares
from gt import data


def test_tensors_and_arrays_by_row():
    dataset = data.TensorDataset(gt.arange(6).reshape(3, 2), np.arange(3.0))
    assert len(dataset) == 3
    row, number = dataset[1]
    assert row.tolist() == [2, 3] and number == 1.0
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        data.TensorDataset(gt.ones(2), gt.ones(3))


def test_concatenated():
    both = data.ConcatDataset([[1, 2], [3]])
    assert [both[i] for i in range(3)] == [1, 2, 3] and both[-1] == 3 and len(both) == 3
    assert both.cumulative_sizes == [2, 3]
    assert isinstance(Squares() + Squares(), data.ConcatDataset)
    with pytest.raises(ValueError, match="absolute value of index"):
        both[-4]
    with pytest.raises(IndexError):
        both[3]
    with pytest.raises(AssertionError, match="empty"):
        data.ConcatDataset([])
    with pytest.raises(AssertionError, match="IterableDataset"):
        data.ConcatDataset([Count(3)])


def test_chained():
    assert list(Count(2) + Count(3)) == [0, 1, 0, 1, 2]
    with pytest.raises(AssertionError, match="only supports"):
        list(data.ChainDataset([[1]]))


def test_stacked():
    rows = data.StackDataset([1, 2], "ab")
    assert rows[1] == (2, "b") and len(rows) == 2
    assert rows.__getitems__([1, 0]) == [(2, "b"), (1, "a")]
    named = data.StackDataset(n=[1, 2], s=data.Subset("cab", [1, 2]))
    assert named[0] == {"n": 1, "s": "a"} and named.__getitems__([1]) == [{"n": 2, "s": "b"}]
    for wrong in ([], [[1], [1, 2]]):
        with pytest.raises(ValueError):
            data.StackDataset(*wrong)
    with pytest.raises(ValueError):
        data.StackDataset([1], n=[1])


def test_a_subset_asks_for_several_at_once():
    class AtOnce(list):
        def __getitems__(self, indices):
            return [self[i] + 100 for i in indices]

    subset = data.Subset(AtOnce(range(10)), [3, 5, 7])
    assert subset[1] == 5 and subset.__getitems__([0, 2]) == [103, 107] and len(subset) == 3

    class Half(data.Subset):
        def __getitem__(self, idx):
            return 0

    with pytest.raises(NotImplementedError, match="__getitems__"):
        Half([1], [0])


def test_random_split():
    for lengths, expected in (([6, 4], [6, 4]), ([0.5, 0.3, 0.2], [6, 3, 2])):
        total = sum(expected)
        parts = data.random_split(range(total), lengths, generator=3)
        assert [len(part) for part in parts] == expected
        assert sorted(i for part in parts for i in part.indices) == list(range(total))
    gt.manual_seed(1)
    one = data.random_split(range(50), [20, 30])[0].indices
    gt.manual_seed(1)
    assert data.random_split(range(50), [20, 30])[0].indices == one != list(range(20))
    with pytest.raises(ValueError, match="Sum of input lengths"):
        data.random_split(range(5), [1, 2])
    with pytest.raises(ValueError, match="Fraction at index 0"):
        data.random_split(range(5), [1.5, -0.5])
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        data.random_split(range(1), [0.5, 0.5])


@pytest.mark.parametrize("lengths", [[0.1] * 10, [0.33, 0.33, 0.34], [3, 4, 10]])
def test_splits_are_as_long_as_pytorchs(lengths):
    torch_data = pytest.importorskip("torch.utils.data")
    ours = data.random_split(range(17), lengths)
    theirs = torch_data.random_split(range(17), lengths)
    assert [len(part) for part in ours] == [len(part) for part in theirs]


def test_the_names_of_pytorch_are_there():
    torch_data = pytest.importorskip("torch.utils.data")
    # The names of data pipes, which PyTorch no longer develops.
    others = {"DataChunk", "argument_validation", "runtime_validation", "_DatasetKind"}
    others |= {"runtime_validation_disabled", "guaranteed_datapipes_determinism"}
    others |= {"functional_datapipe", "non_deterministic"}
    others |= {name for name in torch_data.__all__ if "DataPipe" in name or "IterData" in name}
    assert set(torch_data.__all__) - others <= set(data.__all__)
    assert gt.utils.data is gt.data is data
