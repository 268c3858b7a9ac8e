"""Tests of `prefetch`: batches and their order, exceptions, early ends, and read-ahead."""

import gc
import threading
import time
from collections import defaultdict, namedtuple

import gt
import numpy as np
import pytest
from data_samples import Count, Squares
from gt import data
from processes import run_python

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),
]

Pair = namedtuple("Pair", ["left", "right"])


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "gt-prefetch"]


def wait_until(holds):
    deadline = time.monotonic() + 10
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert holds()


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    gc.collect()
    wait_until(lambda: not threads())


#: Lengths of a small batch, transferred by the consumer, and of a large one, by the thread.
SIZES = pytest.mark.parametrize("length", [3, 300_000])


@SIZES
def test_structure_and_dtypes(length):
    ones = np.ones(length, np.float32)
    batch = {"x": ones, "pair": Pair(ones.astype(np.int64), (ones > 0, [ones])), "s": "text"}
    batch |= {"words": np.array(["a", "b"]), "n": 3, "half": ones.astype(np.float16), "none": None}
    batch["more"] = defaultdict(list, x=ones)
    (made,) = data.prefetch([batch])
    assert type(made["more"]) is defaultdict and isinstance(made["more"]["x"], gt.Tensor)
    assert type(made) is dict and type(made["pair"]) is Pair and type(made["pair"].right) is tuple
    assert (made["s"], made["n"], made["none"]) == ("text", 3, None)
    assert made["words"] is batch["words"] and type(made["pair"].right[1]) is list
    assert made["x"].dtype == gt.float32 and made["pair"].left.dtype == gt.int64
    assert made["pair"].right[0].dtype == gt.bool and made["half"].dtype == gt.float16
    assert made["x"].sum().item() == length == made["pair"].right[1][0].sum().item()


@SIZES
def test_every_source(length):
    def numbers():
        for number in range(5):
            yield np.full(length, number, np.float32)

    def firsts(source):
        return [batch[-1].item() for batch in data.prefetch(source)]

    rows = np.stack(list(numbers()))
    assert firsts(numbers()) == firsts(list(numbers())) == firsts(rows) == list(range(5))
    for workers in (0, 2):
        loader = data.DataLoader(rows, 2, num_workers=workers)
        ahead = data.prefetch(loader)
        assert len(ahead) == 3
        for _ in range(2):
            assert [batch[:, -1].tolist() for batch in ahead] == [[0, 1], [2, 3], [4]]


@SIZES
def test_a_loader_of_pytorch(length):
    torch = pytest.importorskip("torch")
    dataset = torch.utils.data.TensorDataset(torch.ones(4, length), torch.arange(4))
    for x, y in data.prefetch(torch.utils.data.DataLoader(dataset, 2)):
        assert isinstance(x, gt.Tensor) and x.shape == (2, length) and y.dtype == gt.int64
    (half,) = data.prefetch([torch.ones(length, dtype=torch.bfloat16)])
    assert half.dtype == gt.bfloat16 and half.float().sum().item() == length


def test_at_most_so_many_are_ahead():
    taken = []

    def source():
        for number in range(10):
            taken.append(number)
            yield np.array(number)

    for size in (1, 3):
        taken.clear()
        batches = iter(data.prefetch(source(), size))
        wait_until(lambda size=size: len(taken) == size)
        for given in range(1, 4):
            assert next(batches).item() == given - 1
            wait_until(lambda given=given, size=size: len(taken) == given + size)
            time.sleep(0.02)
            assert len(taken) == given + size


def test_an_exception_comes_where_its_batch_would():
    def source():
        yield np.ones(2)
        yield np.ones(2)
        raise ValueError("the third is bad")

    batches = iter(data.prefetch(source(), 5))
    assert [next(batches).tolist() for _ in range(2)] == [[1, 1], [1, 1]]
    with pytest.raises(ValueError, match="the third is bad") as caught:
        next(batches)
    assert "source" in [entry.name for entry in caught.traceback]
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(batches)

    def fail(index):
        raise ValueError(f"sample {index} is bad")

    # A loader continues with its next batch after an exception.
    batches = iter(data.prefetch(data.DataLoader(Squares(3, fail, at=(1,)))))
    next(batches)
    with pytest.raises(ValueError, match="sample 1 is bad"):
        next(batches)
    assert next(batches)["square"].item() == 4


def test_leaving_early_ends_the_thread_and_the_source():
    closed = []

    def source():
        try:
            while True:
                yield np.ones(2)
        finally:
            closed.append(True)

    for _ in data.prefetch(source()):
        break
    gc.collect()
    wait_until(lambda: not threads() and closed)
    batches = iter(data.prefetch(source()))
    next(batches)
    assert threads()
    start = time.monotonic()
    batches.close()
    assert not threads() and time.monotonic() - start < 0.2
    with pytest.raises(StopIteration):
        next(batches)


def test_leaving_early_ends_the_workers_of_a_loader():
    import multiprocessing

    def slow(index):
        time.sleep(0.05)

    dataset = Squares(1000, slow, range(1000))
    for _ in data.prefetch(data.DataLoader(dataset, num_workers=2)):
        break
    gc.collect()
    names = [process.name for process in multiprocessing.active_children()]
    wait_until(lambda: not [p for p in multiprocessing.active_children() if "gt-data" in p.name])
    assert len(names) <= 4


@SIZES
def test_tensors_are_the_consumers(length):
    with gt.Session(workers=1) as session:
        for batch in data.prefetch([np.ones(length)] * 3):
            assert gt.Session.of(batch) is session and (batch + 1)[0].item() == 2


def test_the_position_is_that_of_who_takes_the_batches():
    def make():
        return data.prefetch(data.DataLoader(range(20), 2, shuffle=True, generator=1), 4)

    ahead = make()
    batches, states = [], []
    for batch in ahead:
        batches.append(batch.tolist())
        states.append(ahead.state_dict())
    for given, state in enumerate(states, 1):
        assert state["batches"] == given
        restored = make()
        restored.load_state_dict(state)
        assert restored.state_dict()["batches"] == given
        assert [batch.tolist() for batch in restored] == batches[given:]


def test_the_position_before_the_first_batch_and_after_a_loop_that_was_left():
    loader = data.DataLoader(range(20), 2, shuffle=True)
    ahead = data.prefetch(loader)
    batches = iter(ahead)
    state = ahead.state_dict()
    first = next(batches).tolist()
    batches.close()
    assert ahead.state_dict()["batches"] == 1 and ahead.state_dict()["epoch"] == 0
    loader.load_state_dict(state)
    assert next(iter(loader)).tolist() == first


def test_the_order_is_as_without_it():
    for dataset in (range(20), Count(20)):
        gt.manual_seed(2)
        loader = data.DataLoader(dataset, 3, shuffle=None if isinstance(dataset, Count) else True)
        plain = [[batch.tolist() for batch in loader] for _ in range(2)]
        gt.manual_seed(2)
        assert [[b.tolist() for b in data.prefetch(loader)] for _ in range(2)] == plain


def test_loading_and_computing_overlap():
    def source():
        for _ in range(8):
            time.sleep(0.05)
            yield np.ones(2)

    start = time.monotonic()
    for _ in data.prefetch(source()):
        time.sleep(0.05)
    assert time.monotonic() - start < 0.7


def test_a_source_that_cannot_say_where_it_is():
    loader = data.DataLoader(range(6), num_workers=1, in_order=False)
    ahead = data.prefetch(loader)
    assert sorted(batch.item() for batch in ahead) == list(range(6))
    with pytest.raises(RuntimeError, match="in_order=False"):
        ahead.state_dict()
    with pytest.raises(AttributeError):
        data.prefetch([1]).state_dict()


def test_a_session_that_is_closed_meanwhile():
    with gt.Session(workers=1):
        batches = iter(data.prefetch((np.ones(300_000) for _ in range(50)), 1))
        next(batches)
    with pytest.raises(ConnectionError):
        for _ in batches:
            pass


def test_mistakes():
    for size in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="expected an integer of at least 1"):
            data.prefetch([], size)
    with pytest.raises(TypeError, match="prefetch: got int, expected an iterable"):
        data.prefetch(3)


def test_the_end_of_a_program_in_a_loop():
    done = run_python(
        "import gt, numpy as np, itertools\n"
        "batches = iter(gt.data.prefetch(np.ones(500_000) for _ in itertools.count()))\n"
        "print(next(batches)[0].item())\n"
    )
    assert (done.stdout, done.stderr, done.returncode) == ("1.0\n", "", 0)


def test_a_forked_child_does_not_wait_for_ever():
    done = run_python(
        "import gt, os, numpy as np\n"
        "batches = iter(gt.data.prefetch([np.ones(2)] * 9, 1))\n"
        "next(batches); next(batches)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try:\n"
        "        for _ in batches: pass\n"
        "    except RuntimeError as error: print('thread is gone' in str(error), flush=True)\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
        "print(len(list(batches)))\n",
        PYTHONWARNINGS="ignore",
    )
    assert (done.stdout, done.stderr) == ("True\n7\n", "")
