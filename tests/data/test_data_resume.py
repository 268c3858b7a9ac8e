"""Tests that a restored `DataLoader` yields exactly the remaining batches."""

import json

import gt
import numpy as np
import pytest
from data_samples import Count, CountWithState, Squares
from gt import data

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),
]


def lists(batches):
    """Return batches as lists of numbers."""
    return [batch.tolist() for batch in batches]


def make_loader(kind, workers):
    """Return a new loader, as a program constructs it at its start."""
    numbers, options = range(11), {"num_workers": workers}
    if kind == "in order":
        return data.DataLoader(numbers, 3, **options)
    if kind == "shuffled":
        return data.DataLoader(numbers, 3, shuffle=True, **options)
    if kind == "shuffled by a generator":
        return data.DataLoader(numbers, 3, shuffle=True, generator=7, **options)
    if kind == "shuffled by NumPy's":
        return data.DataLoader(numbers, 3, True, generator=np.random.default_rng(3), **options)
    if kind == "a weighted sampler":
        sampler = data.WeightedRandomSampler(np.arange(1, 12), 11)
        return data.DataLoader(numbers, 3, sampler=sampler, **options)
    if kind == "a sampler with a generator":
        sampler = data.SubsetRandomSampler(numbers, generator=2)
        return data.DataLoader(numbers, 3, sampler=sampler, **options)
    if kind == "batches of a sampler":
        sampler = data.BatchSampler(data.RandomSampler(numbers), 3, drop_last=False)
        return data.DataLoader(numbers, batch_sampler=sampler, **options)
    if kind == "one at a time":
        return data.DataLoader(np.arange(4), None, shuffle=True, **options)
    if kind == "stream":
        return data.DataLoader(Count(11), 3, **options)
    assert kind == "stream with state"
    return data.DataLoader(CountWithState(11), 3, **options)


KINDS = [
    "in order",
    "shuffled",
    "shuffled by a generator",
    "shuffled by NumPy's",
    "a weighted sampler",
    "a sampler with a generator",
    "batches of a sampler",
    "one at a time",
    "stream",
    "stream with state",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("workers", [0, 2])
def test_every_position(kind, workers):
    gt.manual_seed(4)
    loader = make_loader(kind, workers)
    lists(loader)
    states, batches = [], []
    for batch in loader:
        batches.append(batch.tolist())
        # The program draws random numbers between batches, as for dropout.
        gt.rand(2)
        states.append(json.loads(json.dumps(loader.state_dict())))
    later = lists(loader) if "generator" in kind or "NumPy" in kind else None
    assert len(batches) in (4, 5) and all(state["epoch"] == 1 for state in states)
    for given, state in enumerate(states, 1):
        gt.manual_seed(1000 + given)
        restored = make_loader(kind, workers)
        restored.load_state_dict(state)
        assert restored.state_dict() == state
        assert lists(restored) == batches[given:]
        assert restored.state_dict()["epoch"] == 2
        if later is not None:
            assert lists(restored) == later


def test_between_passes():
    loader = make_loader("shuffled by a generator", 0)
    assert loader.state_dict()["epoch"] == loader.state_dict()["batches"] == 0
    lists(loader)
    state = loader.state_dict()
    assert (state["epoch"], state["batches"]) == (1, 0)
    second, restored = lists(loader), make_loader("shuffled by a generator", 0)
    restored.load_state_dict(state)
    assert lists(restored) == second
    # A pass that is left early counts as finished when the next one starts.
    next(iter(restored))
    iter(restored)
    assert restored.state_dict()["epoch"] == 3


def test_the_same_after_the_whole_program_is_restored():
    """Restoring `gt.get_rng_state()` too repeats the orders of later passes."""
    gt.manual_seed(1)
    loader = make_loader("shuffled", 0)
    batches = iter(loader)
    next(batches)
    stored = loader.state_dict(), gt.get_rng_state().numpy()
    rest = lists(batches), lists(loader), gt.rand(2).tolist()
    gt.manual_seed(99)
    restored = make_loader("shuffled", 0)
    restored.load_state_dict(stored[0])
    gt.set_rng_state(gt.from_numpy(stored[1]))
    assert (lists(restored), lists(restored), gt.rand(2).tolist()) == rest


def test_workers_may_be_others():
    loader = make_loader("shuffled", 2)
    batches = iter(loader)
    first = next(batches)
    state = loader.state_dict()
    for workers in (0, 1, 3):
        restored = make_loader("shuffled", workers)
        restored.load_state_dict(state)
        rest = lists(restored)
        assert sorted(sum(rest, first.tolist())) == list(range(11))
    assert rest == lists(batches)


def test_persistent_workers():
    def make():
        return data.DataLoader(Count(11), 2, num_workers=2, persistent_workers=True)

    loader = make()
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    rest = lists(batches)
    # Restore a new loader, and the one whose persistent workers have already read.
    for restored in (make(), loader):
        restored.load_state_dict(state)
        assert lists(restored) == rest


def test_a_sample_that_fails_counts_as_given():
    def fail(index):
        raise ValueError

    loader = data.DataLoader(Squares(6, fail, at=(2,)), 2)
    batches = iter(loader)
    next(batches)
    with pytest.raises(ValueError):
        next(batches)
    restored = data.DataLoader(Squares(6, fail, at=(2,)), 2)
    restored.load_state_dict(loader.state_dict())
    assert [batch["square"].tolist() for batch in restored] == [[16, 25]]


def test_a_state_without_length_and_order_is_taken():
    """Older versions saved states without these entries."""
    loader = make_loader("shuffled", 0)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    del state["dataset length"], state["order"]
    restored = make_loader("shuffled", 0)
    restored.load_state_dict(state)
    assert lists(restored) == lists(batches)


def test_mistakes():
    loader = data.DataLoader(range(4), 2)
    state = loader.state_dict()
    with pytest.raises(ValueError, match="batch_size was 2, but is 3 here"):
        data.DataLoader(range(4), 3).load_state_dict(state)
    with pytest.raises(ValueError, match="num_workers was 1, but is 0 here"):
        other = data.DataLoader(Count(4), 2, num_workers=1).state_dict()
        data.DataLoader(Count(4), 2).load_state_dict(other)
    with pytest.raises(ValueError, match="dataset length was 4, but is 3 here"):
        data.DataLoader(range(3), 2).load_state_dict(state)
    with pytest.raises(ValueError, match="order was unseeded, but is RandomSampler here"):
        data.DataLoader(range(4), 2, shuffle=True).load_state_dict(state)
    shuffled = data.DataLoader(range(4), 2, shuffle=True).state_dict()
    with pytest.raises(ValueError, match="order was RandomSampler, but is unseeded here"):
        loader.load_state_dict(shuffled)
    with pytest.raises(ValueError, match="the state has .*'weight'"):
        loader.load_state_dict({"weight": 1})
    with pytest.raises(RuntimeError, match="in_order=False"):
        data.DataLoader(range(4), num_workers=1, in_order=False).state_dict()
