"""Tests of samplers: their orders, lengths and errors."""

import tracemalloc
from collections import Counter

import gt
import numpy as np
import pytest
from gt import data
from gt.data import order


def test_the_same_seed_gives_the_same_order():
    def orders(generator):
        sampler = data.RandomSampler(range(100), generator=generator)
        return list(sampler), list(sampler)

    for make in (
        lambda: 5,
        lambda: gt.Generator().manual_seed(5),
        lambda: np.random.default_rng(5),
        lambda: np.random.Generator(np.random.MT19937(5)),
        lambda: gt.manual_seed(5),
    ):
        first, second = orders(make())
        assert (first, second) == orders(make()) and first != second
        assert sorted(first) == sorted(second) == list(range(100))
    assert orders(5)[0] != orders(6)[0]


@pytest.mark.parametrize(
    "sampler, order",
    [
        (data.RandomSampler(range(8), generator=0), [6, 0, 3, 5, 4, 1, 2, 7]),
        (data.RandomSampler(range(8), True, 6, generator=0), [2, 4, 5, 3, 4, 4]),
        (data.SubsetRandomSampler([5, 6, 7, 8], generator=0), [5, 8, 6, 7]),
        (data.WeightedRandomSampler([1, 2, 3, 0], 6, generator=0), [1, 2, 2, 1, 2, 2]),
        (data.WeightedRandomSampler([1, 2, 3, 0], 3, False, generator=0), [2, 1, 0]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_order_never_changes(sampler, order):
    """Orders do not depend on the machine or on versions, so that training can be repeated."""
    assert list(sampler) == order


def test_with_replacement_and_more_than_there_are():
    drawn = list(data.RandomSampler(range(3), replacement=True, num_samples=3000, generator=0))
    assert len(drawn) == 3000 and all(900 < count < 1100 for count in Counter(drawn).values())
    more = list(data.RandomSampler(range(3), num_samples=7, generator=0))
    assert Counter(more[:3]) == Counter(more[3:6]) == Counter(range(3)) and len(more) == 7


def test_weights():
    weights = [0.1, 0.0, 0.6, 0.3]
    drawn = Counter(data.WeightedRandomSampler(weights, 10_000, generator=0))
    assert 1 not in drawn
    for place, weight in enumerate(weights):
        assert abs(drawn[place] / 10_000 - weight) < 0.02
    firsts = Counter(
        next(iter(data.WeightedRandomSampler(weights, 3, False, generator=seed)))
        for seed in range(2000)
    )
    assert abs(firsts[2] / 2000 - 0.6) < 0.05
    assert sorted(data.WeightedRandomSampler(weights, 3, False)) == [0, 2, 3]
    for wrong, count, message in (
        ([1.0, -1.0], 1, "below 0"),
        ([0.0, 0.0], 1, "sum of the weights is 0"),
        ([1.0, 0.0], 2, "without replacement"),
    ):
        with pytest.raises(RuntimeError, match=message):
            list(data.WeightedRandomSampler(wrong, count, False))


def test_mistakes():
    with pytest.raises(ValueError, match="num_samples should be a positive"):
        data.RandomSampler([])
    with pytest.raises(TypeError, match="replacement should be a boolean"):
        data.RandomSampler([1], replacement=1)
    with pytest.raises(ValueError, match="weights should be a 1d"):
        data.WeightedRandomSampler([[1.0]], 1)
    with pytest.raises(ValueError, match="batch_size should be a positive"):
        data.BatchSampler([1], 0, False)
    with pytest.raises(ValueError, match="drop_last should be a boolean"):
        data.BatchSampler([1], 1, 1)
    with pytest.raises(TypeError, match="generator is str, expected gt.Generator"):
        data.RandomSampler([1], generator="seed")
    with pytest.raises(NotImplementedError):
        iter(data.Sampler())


def test_as_pytorch():
    torch_data = pytest.importorskip("torch.utils.data")
    for length in (1, 2, 7, 12):
        for size in (1, 3, 5, 20):
            for drop in (False, True):
                ours, theirs = (
                    of.BatchSampler(of.SequentialSampler(range(length)), size, drop)
                    for of in (data, torch_data)
                )
                assert list(ours) == list(theirs) and len(ours) == len(theirs)
    for kind, arguments in (
        ("RandomSampler", (range(5), True, 8)),
        ("RandomSampler", (range(5),)),
        ("SubsetRandomSampler", ([3, 4],)),
        ("WeightedRandomSampler", ([1.0, 2.0], 9)),
    ):
        ours, theirs = getattr(data, kind)(*arguments), getattr(torch_data, kind)(*arguments)
        assert len(ours) == len(theirs) == len(list(ours))


@pytest.mark.parametrize("length", [1, 5, 8, 11])
@pytest.mark.parametrize("drop", [False, True])
def test_shares_of_programs(length, drop):
    def shares(of, shuffle, epoch=0):
        samplers = [
            of.DistributedSampler(range(length), 3, rank, shuffle, 7, drop) for rank in range(3)
        ]
        for sampler in samplers:
            sampler.set_epoch(epoch)
        assert all(len(list(sampler)) == len(sampler) for sampler in samplers)
        return [list(sampler) for sampler in samplers]

    if not drop or length >= 3:
        for epoch in range(2):
            counts = Counter(sum(shares(data, True, epoch), []))
            assert drop or set(counts) == set(range(length))
    if length > 5:
        assert shares(data, True) == shares(data, True) != shares(data, True, 1)
    torch_data = pytest.importorskip("torch.utils.data")
    assert shares(data, False) == shares(torch_data, False)
    for of in (data, torch_data):
        with pytest.raises(ValueError, match="Invalid rank 3"):
            of.DistributedSampler(range(length), 3, 3)


@pytest.mark.parametrize("replacement", [False, True])
def test_the_order_of_a_large_dataset_is_not_a_list(replacement):
    length = 1 << 18
    sampler = data.RandomSampler(range(length), replacement=replacement, generator=0)
    tracemalloc.start()
    count = sum(1 for _ in sampler)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == length
    # Random keys and their order, 8 bytes each; a list of ints would take 36 more.
    assert peak < (2e6 if replacement else 20 * length + 2e6)


@pytest.mark.parametrize("count", [5, (1 << 14) + 3, 3 << 14])
def test_blocks_of_indices_continue_one_sequence(count):
    whole = (order.uniform(count, np.random.Philox(7)) * 1000).astype(int).tolist()
    assert list(order.below(1000, count, 7)) == whole
    assert list(order.numbers(np.arange(count))) == list(range(count))
