"""Bad input: each error states what was given, what was expected and what to do."""

import math
import subprocess
import sys
from pathlib import Path

import gt
import numpy as np
import pytest
from processes import embedded_only, run_python


@pytest.mark.parametrize(
    ("error", "words", "act"),
    [
        (ValueError, ["(2, 3)", "(4,)", "axis 1"], lambda: gt.ones(2, 3) + gt.ones(4)),
        (
            ValueError,
            ["(2, 3)", "(2, 3)", "3 columns", "2 rows"],
            lambda: gt.ones(2, 3) @ gt.ones(2, 3),
        ),
        (ValueError, ["6 elements", "(4, -1)"], lambda: gt.ones(6).reshape(4, -1)),
        (ValueError, ["must not be negative"], lambda: gt.ones(-1)),
        (ValueError, ["manual_seed", "2**64"], lambda: gt.manual_seed(2**70)),
        (IndexError, ["max", "axis 2"], lambda: gt.ones(3).max(2)),
        (ValueError, ["ragged", "depth 1"], lambda: gt.tensor([[1, 2], [3]])),
        (ValueError, ["ragged"], lambda: gt.tensor([1, [2]])),
        (ValueError, ["6 elements", "not one"], lambda: gt.ones(2, 3).item()),
        (RuntimeError, ["ambiguous", "(2,)", "any()"], lambda: bool(gt.ones(2))),
        (ValueError, ["8 axes", "9"], lambda: gt.ones(*[1] * 9)),
        (ValueError, ["empty axis"], lambda: gt.ones(0, 2).max(axis=0)),
        (ValueError, ["(2,)"], lambda: gt.cat([gt.ones(2), gt.ones(2, 2)])),
        (IndexError, ["axis 2", "2 axes", "-2 to 1"], lambda: gt.ones(2, 3).sum(2)),
        (IndexError, ["index 5", "length 3"], lambda: gt.ones(3)[5]),
        (IndexError, ["int64", "float32"], lambda: gt.ones(3)[gt.tensor([0, 1])]),
        (IndexError, ["2 indices", "1 axes"], lambda: gt.ones(3)[0, 0]),
        (IndexError, ["..."], lambda: gt.ones(3)[..., ...]),
        (ValueError, ["step of -1", "flip"], lambda: gt.ones(3)[::-1]),
        (TypeError, ["float33", "float32"], lambda: gt.ones(2, dtype="float33")),
        (TypeError, ["bool"], lambda: gt.ones(2, dtype=gt.bool) - gt.ones(2, dtype=gt.bool)),
        (TypeError, ["int64", "float"], lambda: gt.arange(3).mean()),
        (TypeError, ["str"], lambda: gt.tensor(["a"])),
        (TypeError, ["dict"], lambda: gt.ones(2) + {}),
        (TypeError, ["object"], lambda: gt.tensor(np.array([object()]))),
        (TypeError, ["int", "str"], lambda: gt.ones("3")),
        (RuntimeError, ["add up"], lambda: gt.ones(5).split([1, 2])),
        (ValueError, ["high", "low"], lambda: gt.randint(5, 5, (2,))),
        (ValueError, ["probability"], lambda: gt.nn.Dropout(2)),
        (ValueError, ["same shape"], lambda: gt.nn.mse_loss(gt.ones(2), gt.ones(2, 1))),
        (
            ValueError,
            ["(3,)", "(2, 4)"],
            lambda: gt.nn.cross_entropy_loss(gt.ones(2, 4), gt.arange(3)),
        ),
        (ValueError, ["at least one"], lambda: gt.optim.SGD([])),
        (ValueError, ["int64"], lambda: gt.ones(2) + 10**30),
        (ValueError, ["(2, 3)", "(2,)"], lambda: gt.ones(2, 3) @ gt.ones(2)),
        (ValueError, ["matmul", "one axis"], lambda: gt.ones(2) @ 3),
        (ValueError, ["(3, 3)", "(2, 3)"], lambda: gt.ones(2, 3).expand(3, 3)),
        (ValueError, ["axis 0", "twice"], lambda: gt.ones(3).sum((0, 0))),
        (ValueError, ["(2,)", "(3,)"], lambda: gt.stack([gt.ones(2), gt.ones(3)])),
        (ValueError, ["too large"], lambda: gt.zeros(2**40, 2**40)),
        (IndexError, ["mask", "(2,)", "(3,)"], lambda: gt.ones(3)[gt.tensor([True, False])]),
        (TypeError, ["add", "other"], lambda: gt.add(gt.ones(1))),
        (ValueError, ["two axes"], lambda: gt.ones(5).tril()),
        (ValueError, ["'max'", "'mean'"], lambda: gt.nn.mse_loss(gt.ones(1), gt.ones(1), "max")),
        (IndexError, ["axis 3", "stack"], lambda: gt.stack([gt.ones(2)], dim=3)),
        (IndexError, ["axis 2", "max"], lambda: gt.ones(3).max(2)),
        (IndexError, ["gather", "axis 1"], lambda: gt.ones(2).gather(1, gt.arange(1))),
        (IndexError, ["100000000000000000000"], lambda: gt.ones(3)[10**20]),
        (TypeError, ["axis or dim"], lambda: gt.ones(3).sum(axis=0, dim=0)),
        (TypeError, ["str"], lambda: gt.ones(3)["a"]),
        (TypeError, ["NoneType"], lambda: gt.ones(3) + None),
        (TypeError, ["NoneType"], lambda: gt.tensor([1, None])),
        (TypeError, ["datetime64", "float64"], lambda: gt.tensor(np.array(["2020"], "M8[D]"))),
        (TypeError, ["index", "float32"], lambda: gt.ones(2).gather(0, gt.ones(2))),
        (TypeError, ["bool", "float32"], lambda: gt.where(gt.ones(2), 1, 2)),
        (TypeError, ["int64", "float"], lambda: gt.arange(3).softmax(0)),
        (TypeError, ["int64", "float"], lambda: gt.rand(2, dtype="int64")),
        (TypeError, ["'cuba'", "float32"], lambda: gt.ones(2).to("cuba")),
        (ValueError, ["-1", "split"], lambda: gt.ones(3).split(-1)),
        (RuntimeError, ["no steps of -1"], lambda: gt.arange(0, 10, -1)),
        (RuntimeError, ["no tensors"], lambda: gt.cat([])),
    ],
)
def test_messages(error, words, act):
    with pytest.raises(error) as caught:
        act()
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_a_failure_on_a_worker_names_line_operation_and_worker():
    bad = gt.ones(3)[gt.tensor([7], dtype=gt.int64)]  # the line
    dependent = bad * 2 + 1
    with pytest.raises(gt.WorkerError) as caught:
        dependent.numpy()
    text = str(caught.value)
    lines = Path(__file__).read_text().splitlines()
    line = next(n for n, text in enumerate(lines, 1) if "# the line" in text)
    for word in ["indexing: index 7 is not in [-3, 3)", "worker", f"{__file__}:{line}"]:
        assert word in text, text
    assert (gt.ones(3) * 2).tolist() == [2, 2, 2], "the worker still computes"


@pytest.mark.parametrize(
    ("words", "make"),
    [
        (["gather", "index 5", "length 2"], lambda i: gt.ones(2).gather(0, i + 5)),
        (["gather", "index -1"], lambda i: gt.ones(2).gather(0, i - 1)),
        (["index_select", "index 9"], lambda i: gt.ones(2).index_select(0, i + 9)),
        (["scatter_add", "index 2"], lambda i: gt.ones(2).scatter_add(0, i + 2, gt.ones(1))),
        (["remainder", "zero"], lambda i: i % 0),
        (["floor_divide", "zero"], lambda i: (i + 1) // i),
        (["pow", "negative"], lambda i: (i + 2) ** -1),
        (
            ["cross_entropy_loss: target 3 is not in [0, 3)"],
            lambda i: gt.nn.cross_entropy_loss(gt.ones(1, 3), i + 3),
        ),
    ],
)
def test_errors_that_depend_on_values_are_raised_by_the_fetch(words, make):
    index = gt.tensor([0], dtype="int64")
    result = make(index)
    for _ in range(2):  # again at each fetch
        with pytest.raises(gt.WorkerError) as caught:
            result.tolist()
        for word in [*words, "on worker", __file__]:
            assert word in str(caught.value), caught.value
    del result
    assert (index + 1).tolist() == [1]


def test_a_failure_reaches_its_gradients_and_no_other_tensor():
    a = gt.ones(3, requires_grad=True)
    good = (a * 2).sum()
    bad = a[gt.tensor([3], dtype="int64")].sum()
    bad.backward()
    with pytest.raises(gt.WorkerError, match="index 3"):
        a.grad.tolist()
    a.grad = None
    good.backward()
    assert a.grad.tolist() == [2, 2, 2]


def test_errors_name_a_line_of_the_user_not_of_the_package():
    layer = gt.nn.Linear(2, 2)
    rows = gt.ones(2, 2)[gt.tensor([5, 0], dtype=gt.int64)]  # its line
    layer.weight = gt.nn.Parameter(rows)
    with pytest.raises(gt.WorkerError) as caught:
        layer(gt.ones(1, 2)).tolist()
    assert __file__ in str(caught.value)


def test_division_of_integers_by_zero_fails_one_value():
    whole = gt.tensor([4, 5], dtype=gt.int64)
    with pytest.raises(gt.WorkerError, match="zero"):
        (whole // 0).tolist()
    assert (whole // 2).tolist() == [2, 2]


@embedded_only
def test_workers_are_set_before_the_first_tensor():
    gt.ones(1)
    with pytest.raises(RuntimeError, match="before the first tensor"):
        gt.gpu_workers(2)
    for count in (0, -1):
        with pytest.raises(ValueError, match=f"at least one worker is needed, {count} given"):
            gt.gpu_workers(count)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(300, "uint8"), (-256, "uint8"), (128, "int8"), (2**31, "int32"), (2.0**63, "int64")],
)
def test_numbers_must_fit_their_dtype(value, dtype):
    with pytest.raises(ValueError, match=f"cannot be stored as {dtype}"):
        gt.tensor([0, value], dtype=dtype)
    for number in (math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match=f"cannot be stored as {dtype}"):
            gt.tensor([number], dtype=dtype)


def test_limits_of_dtypes_fit():
    for dtype in ("uint8", "int8", "int16", "int32", "int64"):
        limits = np.iinfo(dtype)
        assert gt.tensor([limits.min, limits.max], dtype=dtype).tolist() == [limits.min, limits.max]
    assert gt.tensor([255.9, -1], dtype="uint8").tolist() == [255, 255]


@pytest.mark.parametrize(
    ("memory", "reason"),
    [
        ("", "out of memory: it needs 281.5 TB, and 4.0 MB of the worker's"),
        # GT_MEMORY claims that there is enough memory; the allocation of the engine fails.
        ("999TB", f"out of memory: {4 << 46} bytes asked for; the session holds 4.0 MB"),
    ],
)
def test_without_memory_the_largest_holders_are_named(memory, reason):
    # A program without a file: before Python 3.13, the error cannot read its lines.
    name = "small, large: " if sys.version_info >= (3, 13) else ""
    done = run_python(
        "import gt\n"
        "small, large = gt.ones(10), gt.ones(1000, 1000)\n"
        "try:\n"
        "    gt.zeros(1 << 24, 1 << 22).exp().sum().item()\n"
        "except gt.WorkerError as error:\n"
        "    print(error)\n"
        "print((large.sum() + small.sum()).item())\n",
        GT_MEMORY=memory,
    )
    message, total = done.stdout.strip().rsplit("\n", 1)
    held = (
        f"the largest are {name}float32 (1000, 1000) of <string>:3, 4.0 MB,\n  {name}float32 (10,)"
    )
    for words in (f": {reason}", held, "issued at <string>:5"):
        assert words in message, message
    assert float(total) == 1000010


def test_a_program_on_standard_input_shows_its_line(tmp_path):
    """Its text is read again from the file, which Python has read already."""
    code = "import gt\nx = gt.ones(3)\ny = x[gt.tensor([7], dtype=gt.int64)]\nprint(y)\n"
    (tmp_path / "program").write_text(code)
    with open(tmp_path / "program") as program:
        done = subprocess.run(
            [sys.executable], stdin=program, capture_output=True, text=True, timeout=60
        )
    assert done.stderr.endswith(
        "  issued at <stdin>, line 3\n    y = x[gt.tensor([7], dtype=gt.int64)]\n"
    )
