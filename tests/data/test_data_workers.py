"""Tests of `DataLoader` workers: batches, reported errors and deaths, and clean ends."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import data_samples as samples
import gt
import numpy as np
import pytest
from gt import data
from processes import HONOUR_CTRL_C

# Newer Python versions warn of forks while threads run; the loader warns of too few cores.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),
]

METHODS = ["fork", "spawn", "forkserver"]


def lists(batches):
    """Return batches as lists of numbers."""
    return [batch.tolist() if hasattr(batch, "tolist") else batch for batch in batches]


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Fail a test that leaves worker processes or open files."""
    files = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    yield
    gc.collect()
    for _ in range(100):
        left = [p for p in multiprocessing.active_children() if p.name.startswith("gt-data")]
        if not left:
            break
        time.sleep(0.05)
    assert not left
    # The fork server and the resource tracker keep running.
    now = len(os.listdir("/proc/self/fd")) if files else 0
    assert now <= files + 6


@pytest.mark.parametrize("method", METHODS)
def test_the_same_batches(method):
    expected = list(data.DataLoader(samples.Squares(11), 3))
    loader = data.DataLoader(samples.Squares(11), 3, num_workers=2, multiprocessing_context=method)
    for _ in range(2):
        batches = list(loader)
        assert [b["x"].tolist() for b in batches] == [b["x"].tolist() for b in expected]
        assert [b["square"].tolist() for b in batches] == [b["square"].tolist() for b in expected]
        assert all(isinstance(part, gt.Tensor) for b in batches for part in b.values())
        assert batches[0]["x"].dtype == gt.float32 and batches[0]["square"].dtype == gt.int64


@pytest.mark.parametrize("method", METHODS)
def test_large_arrays_and_tensors_go_there_and_back(method):
    loader = data.DataLoader(samples.Blocks(), 2, num_workers=2, multiprocessing_context=method)
    for number, (block, names) in enumerate(loader):
        assert block.shape == (2, 300, 400) and names == ("name" * 20_000,) * 2
        assert block[:, 7, 9].tolist() == [2 * number, 2 * number + 1]
    tensors = data.TensorDataset(gt.arange(10), gt.ones(10, 2, dtype="bfloat16"))
    part = data.Subset(tensors, range(2, 9))
    loader = data.DataLoader(part, 4, num_workers=1, multiprocessing_context=method)
    batches = list(loader)
    assert [x.tolist() for x, _ in batches] == [[2, 3, 4, 5], [6, 7, 8]]
    assert all(
        ones.dtype == gt.bfloat16 and ones.sum().item() == 2 * len(ones) for _, ones in batches
    )


def test_shuffled_as_without_workers():
    one, other = (
        data.DataLoader(range(50), 4, True, num_workers=workers, generator=3) for workers in (0, 2)
    )
    assert [lists(one), lists(one)] == [lists(other), lists(other)]


def test_persistent_workers_and_other_orders():
    loader = data.DataLoader(
        range(20), 3, num_workers=2, persistent_workers=True, prefetch_factor=3
    )
    expected = lists(data.DataLoader(range(20), 3))
    assert lists(loader) == expected
    pids = {each.process.pid for each in loader._pool._workers}
    first = iter(loader)
    assert next(first).tolist() == [0, 1, 2]
    # Results requested by the abandoned pass are not yielded by the next one.
    assert lists(loader) == expected
    with pytest.raises(RuntimeError, match="another pass"):
        next(first)
    assert pids == {each.process.pid for each in loader._pool._workers}
    any_order = data.DataLoader(samples.Squares(20), 3, num_workers=2, in_order=False)
    assert sorted(sum((b["square"].tolist() for b in any_order), [])) == [i * i for i in range(20)]


@pytest.mark.parametrize("limit, size, drop", [(11, 2, False), (11, 2, True), (3, 4, False)])
def test_streams_as_pytorch(limit, size, drop):
    torch_data = pytest.importorskip("torch.utils.data")

    class Stream(torch_data.IterableDataset):
        def __iter__(self):
            info = torch_data.get_worker_info()
            return iter(range(info.id, limit, info.num_workers))

    theirs = torch_data.DataLoader(
        Stream(), size, num_workers=2, drop_last=drop, multiprocessing_context="fork"
    )
    ours = data.DataLoader(samples.Count(limit), size, num_workers=2, drop_last=drop)
    assert lists(ours) == lists(theirs)


def test_streams_of_different_lengths():
    loader = data.DataLoader(
        samples.Count(0), 2, num_workers=3, worker_init_fn=samples.set_limit, prefetch_factor=3
    )
    numbers = [range(worker, 4 * (worker + 1), 3) for worker in range(3)]
    assert sorted(sum(lists(loader), [])) == sorted(sum(map(list, numbers), []))


def test_random_numbers_of_workers():
    def rolls():
        gt.manual_seed(5)
        loader = data.DataLoader(samples.Rolls(), 2, num_workers=2)
        return [[column.tolist() for column in batch] for batch in loader]

    first = rolls()
    assert first == rolls()
    base = first[0][2][0]
    assert [batch[2] for batch in first] == [[base + i % 2] * 2 for i in range(4)]
    for kind in range(2):
        values = [value for batch in first for value in batch[kind]]
        assert len(set(values)) == len(values)


def test_what_the_collate_function_gives():
    def batches(collate_fn):
        loader = data.DataLoader(samples.Squares(4), 2, num_workers=1, collate_fn=collate_fn)
        return list(loader)

    assert type(batches(samples.plain_arrays)[0]) is np.ndarray
    both = batches(samples.doubled)
    assert isinstance(both[0]["x"], gt.Tensor) and both[1]["x"].tolist() == [[4] * 3, [6] * 3]


@pytest.mark.parametrize("method", ["spawn"])
def test_tensors_that_a_worker_makes_itself(method):
    loader = data.DataLoader(
        samples.Squares(4),
        2,
        num_workers=1,
        collate_fn=samples.made_by_gt,
        multiprocessing_context=method,
    )
    batches = list(loader)
    assert isinstance(batches[0], gt.Tensor) and lists(batches) == [[0, 1], [4, 9]]


@pytest.mark.parametrize(
    "trouble, error, message",
    [
        (samples.raise_value_error, ValueError, "sample 5 is bad"),
        (samples.raise_key_error, KeyError, "no such key"),
        (samples.raise_two_arguments, RuntimeError, "Caught TwoArguments"),
    ],
)
def test_an_exception_in_a_worker(trouble, error, message):
    loader = data.DataLoader(samples.Squares(8, trouble, at=(5,)), 2, num_workers=2)
    batches = iter(loader)
    assert [next(batches)["square"].tolist() for _ in range(2)] == [[0, 1], [4, 9]]
    with pytest.raises(error) as caught:
        next(batches)
    text = str(caught.value)
    assert message in text and "in DataLoader worker process 0 (pid" in text
    assert "Original Traceback" in text and "data_samples.py" in text and "__getitem__" in text
    assert next(batches)["square"].tolist() == [36, 49]


def test_an_exception_of_a_type_that_cannot_be_sent():
    class Local(Exception):
        pass

    def fail(index):
        raise Local("here")

    loader = data.DataLoader(samples.Squares(2, fail, at=(0,)), num_workers=1)
    with pytest.raises(RuntimeError, match="Caught Local in DataLoader worker process 0"):
        next(iter(loader))


def test_mistakes_of_a_worker():
    loader = data.DataLoader([1], num_workers=1, worker_init_fn=samples.fail_at_start)
    with pytest.raises(OSError, match="worker 0 has no file"):
        next(iter(loader))
    loader = data.DataLoader([1], num_workers=1, collate_fn=samples.give_lambda)
    with pytest.raises(Exception, match="in DataLoader worker process 0"):
        next(iter(loader))


@pytest.mark.parametrize(
    "trouble, how",
    [(samples.be_killed, "was killed by signal SIGKILL"), (samples.leave, "with exit code 3")],
)
@pytest.mark.parametrize("method", METHODS)
def test_a_worker_that_dies(trouble, how, method):
    dataset = samples.Squares(100, trouble, at=(9,))
    loader = data.DataLoader(dataset, 2, num_workers=2, multiprocessing_context=method)
    with pytest.raises(RuntimeError, match=rf"DataLoader worker 0 \(pid \d+\) .*{how}"):
        list(loader)
    batches = iter(loader)
    with pytest.raises(RuntimeError):
        while True:
            next(batches)
    given = loader.state_dict()["batches"]
    # The pass has ended; a restored loader yields the batches that it did not yield.
    assert list(batches) == []
    dataset.at = ()
    rest = data.DataLoader(dataset, 2)
    rest.load_state_dict(loader.state_dict())
    assert next(iter(rest))["square"].tolist() == [(2 * given) ** 2, (2 * given + 1) ** 2]


def test_a_worker_that_is_killed_from_outside_while_it_is_waited_for():
    loader = data.DataLoader(samples.Squares(4, samples.sleep_long, at=(1,)), num_workers=2)
    batches = iter(loader)
    next(batches)
    os.kill(batches._pool._workers[1].process.pid, signal.SIGTERM)
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="worker 1 .* was killed by signal SIGTERM"):
        next(batches)
    assert time.monotonic() - start < 5


def test_timeout():
    dataset = samples.Squares(4, samples.sleep_long, at=(1,))
    batches = iter(data.DataLoader(dataset, num_workers=1, timeout=0.5))
    next(batches)
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.5 seconds"):
        next(batches)
    assert time.monotonic() - start < 8


def test_leaving_early_ends_the_workers():
    loader = data.DataLoader(samples.Squares(1000, samples.be_slow, range(1000)), num_workers=2)
    for _batch in loader:
        pids = [p.pid for p in multiprocessing.active_children() if p.name.startswith("gt-data")]
        break
    del _batch
    gc.collect()
    assert len(pids) == 2
    assert not [p for p in multiprocessing.active_children() if p.pid in pids]


PROGRAM = """
import os, signal, sys, time
sys.path.insert(0, {folder!r})
import data_samples as samples
from gt import data

if __name__ == "__main__":
    dataset = samples.Squares(1000, samples.be_slow, range(1000))
    loader = data.DataLoader(dataset, num_workers=2, multiprocessing_context={method!r})
    batches = iter(loader)
    next(batches)
    print(*(each.process.pid for each in batches._pool._workers), flush=True)
    for batch in batches:
        pass
"""


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.skipif(not os.path.exists("/proc/self"), reason="looks at processes by /proc")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_the_end_of_a_program_leaves_no_worker(method, number, tmp_path):
    path = tmp_path / "program.py"
    folder = str(Path(__file__).parent)
    path.write_text(HONOUR_CTRL_C + PROGRAM.format(folder=folder, method=method))
    process = subprocess.Popen(
        [sys.executable, path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert len(pids) == 2 and all(map(is_alive, pids))
    # SIGINT goes to the whole process group, as from a terminal; other signals to the program.
    (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
    _, errors = process.communicate(timeout=30)
    deadline = time.monotonic() + 15
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_alive, pids))
    if number == signal.SIGINT:
        assert errors.count("KeyboardInterrupt") == 1, errors


def test_many_workers_are_warned_of():
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with pytest.warns(UserWarning, match=f"{cores + 1} worker processes"):
        data.DataLoader([1], num_workers=cores + 1)
