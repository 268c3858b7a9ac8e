"""Tests of `DataLoader` in one process, compared with PyTorch's if it is installed."""

import copy
import doctest
import importlib
import itertools
import pickle
import pkgutil

import gt
import numpy as np
import pytest
from data_samples import Count, Squares
from gt import data
from processes import run_python


def lists(batches):
    """Return batches as lists of numbers."""
    return [batch.tolist() if hasattr(batch, "tolist") else batch for batch in batches]


def test_tensors_of_samples():
    batches = list(data.DataLoader(Squares(5), 2))
    assert [batch["square"].tolist() for batch in batches] == [[0, 1], [4, 9], [16]]
    assert batches[1]["x"].tolist() == [[2] * 3, [3] * 3]
    x, square = batches[0]["x"], batches[0]["square"]
    assert isinstance(x, gt.Tensor) and (x.dtype, square.dtype) == (gt.float32, gt.int64)
    rows = data.DataLoader(data.TensorDataset(gt.arange(6).reshape(3, 2), np.arange(3)), 2)
    assert [[part.tolist() for part in batch] for batch in rows] == [
        [[[0, 1], [2, 3]], [0, 1]],
        [[[4, 5]], [2]],
    ]


@pytest.mark.parametrize("length", [1, 6, 7])
def test_as_pytorch(length):
    torch_data = pytest.importorskip("torch.utils.data")
    choices = itertools.product((1, 2, 3, 10, None), (False, True), (range(length), Count(length)))
    for size, drop, dataset in choices:
        if size is None and drop:
            continue
        theirs_of = dataset
        if isinstance(dataset, Count):

            class Stream(torch_data.IterableDataset):
                def __iter__(self):
                    return iter(range(length))

            theirs_of = Stream()
        ours = data.DataLoader(dataset, size, drop_last=drop)
        theirs = torch_data.DataLoader(theirs_of, size, drop_last=drop)
        assert (
            lists(ours)
            == lists(theirs)
            == lists(data.DataLoader(theirs_of, size, False, None, None, 0, None, False, drop))
        )
        if dataset is theirs_of:
            assert len(ours) == len(theirs) == len(list(ours))


def test_the_arguments_are_pytorchs():
    import inspect

    torch_data = pytest.importorskip("torch.utils.data")

    def arguments(function):
        values = inspect.signature(function).parameters.values()
        return [(value.name, value.default, value.kind) for value in values]

    for name in set(data.__all__) - {"prefetch"}:
        ours, theirs = getattr(data, name), getattr(torch_data, name)
        if not inspect.isclass(ours):
            assert [a for a in arguments(ours) if a[0] != "generator"] == [
                a for a in arguments(theirs) if a[0] != "generator"
            ], name
        elif "__init__" in vars(ours):
            assert arguments(ours.__init__) == arguments(theirs.__init__), name


WRONG = [
    dict(num_workers=-1),
    dict(timeout=-1),
    dict(prefetch_factor=2),
    dict(num_workers=1, prefetch_factor=-1),
    dict(persistent_workers=True),
    dict(sampler=[0], shuffle=True),
    dict(batch_sampler=[[0]], batch_size=2),
    dict(batch_sampler=[[0]], drop_last=True),
    dict(batch_size=None, drop_last=True),
    dict(batch_size=0),
    dict(multiprocessing_context="spawn"),
    dict(num_workers=1, multiprocessing_context="other"),
    dict(dataset=[], shuffle=True),
]


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_mistakes_as_pytorchs(options):
    arguments = {"dataset": [1, 2], **options}
    with pytest.raises(ValueError) as ours:
        data.DataLoader(**arguments)
    torch_data = pytest.importorskip("torch.utils.data")
    with pytest.raises(ValueError) as theirs:
        torch_data.DataLoader(**arguments)
    assert str(ours.value).startswith(f"DataLoader: {theirs.value}"[:32])


def test_mistakes():
    for options in (dict(shuffle=True), dict(sampler=[0]), dict(batch_sampler=[[0]])):
        with pytest.raises(ValueError, match="expected unspecified"):
            data.DataLoader(Count(3), **options)
    with pytest.raises(TypeError, match="valid context"):
        data.DataLoader([1], num_workers=1, multiprocessing_context=3)
    loader = data.DataLoader([1, 2])
    for name in ("batch_size", "sampler", "dataset"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set"):
            setattr(loader, name, 3)
    with pytest.raises(TypeError):
        len(data.DataLoader(Count(3)))


def test_shuffled():
    loader = data.DataLoader(range(30), 4, shuffle=True)
    gt.manual_seed(3)
    first, second = lists(loader), lists(loader)
    assert sorted(sum(first, [])) == list(range(30)) and first != second
    gt.manual_seed(3)
    # Another loader with the same seed has the same order.
    again = data.DataLoader(range(30), 4, shuffle=True)
    assert lists(again) == first
    for make in (
        lambda: 7,
        lambda: gt.Generator().manual_seed(7),
        lambda: np.random.default_rng(7),
    ):
        one, two = (data.DataLoader(range(30), 4, True, generator=make()) for _ in range(2))
        assert [lists(one), lists(one)] == [lists(two), lists(two)]


def test_passes_at_the_same_time_have_orders_of_their_own():
    loader = data.DataLoader(range(20), shuffle=True, generator=1)
    one, two = zip(*zip(lists(loader), lists(loader), strict=True), strict=True)
    loader = data.DataLoader(range(20), shuffle=True, generator=1)
    both = list(zip(loader, loader, strict=True))
    assert lists(first for first, _ in both) == list(one)
    assert lists(second for _, second in both) == list(two)


def test_samplers_and_functions_of_the_user():
    assert lists(data.DataLoader(range(9), 2, sampler=[5, 3, 1])) == [[5, 3], [1]]
    loader = data.DataLoader("abcd", batch_sampler=[["3"], "01"], collate_fn=list)
    with pytest.raises(TypeError):
        list(loader)
    loader = data.DataLoader("abcd", batch_sampler=[[3], [0, 1]], collate_fn="".join)
    assert list(loader) == ["d", "ab"] and len(loader) == 2
    assert list(data.DataLoader({"k": 1}, None, sampler=["k"])) == [1]
    assert lists(data.DataLoader([np.ones(2)], None)) == [[1, 1]]


def test_rows_of_tensors_are_taken_at_once():
    """Batches indexed from whole tensors equal those of a collate_fn, which gets single samples."""
    columns = (gt.arange(20).reshape(10, 2), np.arange(10, dtype=np.int16), np.array(["a"] * 10))
    for use in (columns[:2], columns[:1], columns):
        whole = data.TensorDataset(*use)
        for dataset in (whole, data.Subset(data.Subset(whole, range(9, -1, -1)), [0, 3, 4, 8])):
            batches = list(data.DataLoader(dataset, 3))
            singly = list(data.DataLoader(dataset, 3, collate_fn=lambda b: data.default_collate(b)))
            for one, other in zip(batches, singly, strict=True):
                assert str(one) == str(other) and type(one) is type(other)
    with pytest.raises(IndexError):
        list(data.DataLoader(data.TensorDataset(gt.ones(3)), sampler=[5]))


def test_an_exception_leaves_the_others():
    def fail(index):
        raise ValueError(f"sample {index} is bad")

    batches = iter(data.DataLoader(Squares(6, fail, at=(2,)), 2))
    assert next(batches)["square"].tolist() == [0, 1]
    with pytest.raises(ValueError, match="sample 2 is bad"):
        next(batches)
    assert next(batches)["square"].tolist() == [16, 25]
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(batches)


def test_what_is_no_dataset_of_gt(tmp_path):
    path = tmp_path / "numbers"
    np.save(path, np.arange(12, dtype=np.int32).reshape(6, 2))
    memmap = np.load(f"{path}.npy", mmap_mode="r")
    batches = list(data.DataLoader(memmap, 4))
    assert lists(batches) == [[[0, 1], [2, 3], [4, 5], [6, 7]], [[8, 9], [10, 11]]]
    assert batches[0].dtype == gt.int32
    assert lists(data.DataLoader((i * i for i in range(5)), 2)) == [[0, 1], [4, 9], [16]]


def test_a_dataset_of_pytorch():
    torch = pytest.importorskip("torch")
    dataset = torch.utils.data.TensorDataset(torch.arange(3), torch.ones(3, 2))
    batches = list(data.DataLoader(dataset, 2))
    assert [[part.tolist() for part in batch] for batch in batches] == [
        [[0, 1], [[1, 1], [1, 1]]],
        [[2], [[1, 1]]],
    ]
    assert all(isinstance(part, gt.Tensor) for batch in batches for part in batch)


def test_the_examples_of_all_parts():
    options = doctest.NORMALIZE_WHITESPACE
    for name in ("", *(f".{module.name}" for module in pkgutil.iter_modules(data.__path__))):
        module = importlib.import_module(f"gt.data{name}")
        names = {"gt": gt, "np": np}
        assert doctest.testmod(module, extraglobs=names, optionflags=options).failed == 0


def test_nothing_is_imported_before_it_is_used():
    done = run_python(
        "import sys, gt\n"
        "print([name for name in ('numpy', 'multiprocessing', 'gt.data') if name in sys.modules])\n"
        "loader = gt.utils.data.DataLoader(range(2))\n"
        "print([batch.tolist() for batch in loader], 'multiprocessing' in sys.modules)\n"
    )
    assert (done.stdout, done.stderr) == ("[]\n[[0], [1]] False\n", "")


def test_a_loader_is_copied_and_pickled():
    loader = data.DataLoader(Squares(5), 2)
    list(loader)
    for other in (copy.deepcopy(loader), pickle.loads(pickle.dumps(loader))):
        assert [b["square"].tolist() for b in other] == [[0, 1], [4, 9], [16]]


def test_a_dataset_of_hugging_face():
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict({"x": [[1.0], [2.0], [3.0]], "s": ["a", "b", "c"]})
    batches = list(data.DataLoader(rows.with_format("numpy"), 2))
    assert batches[0]["x"].tolist() == [[1], [2]] and list(batches[1]["s"]) == ["c"]
