"""Python's own functions, pytest's and NumPy's checks take tensors as PyTorch's do."""

import array
import bisect
import copy
import functools
import heapq
import itertools
import json
import logging
import math
import operator
import pickle
import random
import statistics
import string
from fractions import Fraction

import gt
import numpy as np
import pytest

X = gt.tensor(2.25)
N = gt.tensor(3, dtype=gt.int64)
ROW = gt.tensor([3.0, 1.0, 2.0])


def plain(value):
    """Return a value with its tensors as numbers and lists."""
    if isinstance(value, gt.Tensor):
        return value.tolist()
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value))
    return value


CASES = {
    "math.sqrt": (lambda: math.sqrt(X), 1.5),
    "math.floor": (lambda: (math.floor(X), math.ceil(X)), (2, 3)),
    "math.isclose": (lambda: math.isclose(X, 2.25) and not math.isnan(X), True),
    "math.prod": (lambda: math.prod([X, X]), 5.0625),
    "math.fsum": (lambda: math.fsum(ROW), 6.0),
    "math.gcd": (lambda: math.gcd(N, 6), 3),
    "numbers": (lambda: (int(X), float(N), complex(X), bool(N)), (2, 3.0, 2.25 + 0j, True)),
    "Fraction": (lambda: Fraction(float(X)), Fraction(9, 4)),
    "abs": (lambda: abs(-X), 2.25),
    "pow": (lambda: pow(X, 2), 5.0625),
    "range": (lambda: list(range(N)), [0, 1, 2]),
    "index": (lambda: ("abc"[N - 1], [1, 2, 3, 4][: operator.index(N)]), ("c", [1, 2, 3])),
    "hex": (lambda: (hex(N), chr(N + 62), "-" * int(N)), ("0x3", "A", "---")),
    "sum": (lambda: sum([ROW, ROW]), [6.0, 2.0, 4.0]),
    "sum of elements": (lambda: sum(ROW), 6.0),
    "max and min": (lambda: (max(ROW), min([X, X * 2])), (3.0, 2.25)),
    "sorted": (lambda: sorted(ROW), [1.0, 2.0, 3.0]),
    "sorted by key": (lambda: sorted([("a", X * 2), ("b", X)], key=lambda it: it[1])[0][0], "b"),
    "reversed": (lambda: list(reversed(ROW)), [2.0, 1.0, 3.0]),
    "zip": (lambda: [a * b for a, b in zip(ROW, [1, 2, 3], strict=True)], [3.0, 2.0, 6.0]),
    "in": (lambda: (2.0 in ROW, 5.0 in ROW), (True, False)),
    "reduce": (lambda: functools.reduce(operator.add, [ROW, ROW, ROW]), [9.0, 3.0, 6.0]),
    "accumulate": (lambda: list(itertools.accumulate(ROW)), [3.0, 4.0, 6.0]),
    "islice": (lambda: list(itertools.islice(itertools.count(), N)), [0, 1, 2]),
    "heapq": (lambda: heapq.nsmallest(2, ROW), [1.0, 2.0]),
    "bisect": (lambda: bisect.bisect(sorted(ROW.tolist()), X), 2),
    "mean": (lambda: statistics.mean(ROW.tolist()), 2.0),
    "fmean": (lambda: statistics.fmean(ROW), 2.0),
    "median": (lambda: statistics.median(ROW), 2.0),
    "stdev": (lambda: statistics.stdev(ROW.tolist()), 1.0),
    "choice": (lambda: random.Random(0).choice(ROW) in ROW, True),
    "sample": (lambda: sorted(random.Random(0).sample(list(ROW), 3)), [1.0, 2.0, 3.0]),
    "choices": (lambda: random.Random(0).choices([7, 8], weights=gt.tensor([0.0, 1.0])), [8]),
    "array": (lambda: array.array("f", ROW), array.array("f", [3.0, 1.0, 2.0])),
    "json": (lambda: json.dumps({"loss": X.item(), "n": int(N)}), '{"loss": 2.25, "n": 3}'),
}


@pytest.mark.parametrize("name", CASES)
def test_functions_of_python(name):
    compute, expected = CASES[name]
    assert plain(compute()) == expected


TEXTS = {
    "digits": (lambda x, n: f"{x:.3f} {n:d} {n:03d}", "2.250 3 003"),
    "signs": (lambda x, n: f"{x:+.1e} {x:g} {x:.1%} {x:>8}", "+2.2e+00 2.25 225.0%     2.25"),
    "percent": (lambda x, n: "%.2f %d" % (x, n), "2.25 3"),  # noqa: UP031
    "format": (lambda x, n: f"{x:.2f} {n * 1000:,}", "2.25 3,000"),
    "formatter": (lambda x, n: string.Formatter().format("{0:.1f}", x), "2.2"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_numbers_are_formatted(name):
    write, expected = TEXTS[name]
    assert write(X, N) == expected == write(2.25, 3)
    assert write(gt.tensor(2.25, requires_grad=True), N) == expected


def test_messages_of_loggers(caplog):
    with caplog.at_level(logging.INFO):
        logging.getLogger("training").info("step %d: loss %.3f", N, X)
    assert caplog.messages == ["step 3: loss 2.250"]


def test_copies():
    weight = gt.nn.Parameter(gt.tensor([1.0, 2.0]))
    weight.grad = gt.ones(2)
    for other in (copy.deepcopy(weight), pickle.loads(pickle.dumps(weight))):
        assert isinstance(other, gt.nn.Parameter) and other.requires_grad
        other.data.zero_()
        assert weight.tolist() == [1.0, 2.0]
    shared = copy.deepcopy({"a": weight, "b": [weight]})
    assert shared["a"] is shared["b"][0] and shared["a"] is not weight


def test_approx_of_pytest():
    assert X == pytest.approx(2.25 + 1e-9) and pytest.approx(2.25) == X
    assert X != pytest.approx(2.3)
    assert ROW.tolist() == pytest.approx([3.0, 1.0, 2.0])
    assert np.asarray(ROW) == pytest.approx(np.array([3.0, 1.0, 2.0]))
    assert {"loss": X} == pytest.approx({"loss": 2.25})


def test_checks_of_numpy():
    np.testing.assert_allclose(ROW, [3.0, 1.0, 2.0])
    np.testing.assert_array_equal(np.array([3.0, 1.0, 2.0]), ROW)
    assert np.allclose(ROW, ROW) and np.array_equal(ROW, ROW) and np.isclose(X, 2.25)
    with pytest.raises(AssertionError, match="Mismatched elements: 2 / 3"):
        np.testing.assert_allclose(ROW, [3.0, 2.0, 1.0])


def test_arrays_of_lists_of_tensors():
    assert np.asarray([X, X]).tolist() == [2.25, 2.25] and np.asarray([X]).dtype == np.float32
    assert np.array([ROW, ROW]).shape == (2, 3)
    assert np.mean([X, X * 3]) == 4.5 and np.stack([ROW, ROW]).shape == (2, 3)
    assert np.arange(5)[N] == 3 and np.zeros(N).shape == (3,)
    losses = np.zeros(2)
    losses[0] = gt.tensor(1.5, requires_grad=True)
    assert losses.tolist() == [1.5, 0.0]
    with pytest.raises(RuntimeError, match="requires grad"):
        np.array([gt.ones(2, requires_grad=True)])


def test_functions_of_numpy_return_tensors():
    """As in PyTorch; those that GT computes itself keep the history."""
    for function in (np.sin, np.exp, np.sqrt, np.abs):
        found = function(ROW)
        assert isinstance(found, gt.Tensor)
        np.testing.assert_allclose(found.numpy(), function(ROW.numpy()), rtol=1e-6)
    weight = gt.tensor([1.0, 3.0], requires_grad=True)
    np.mean(weight).backward()
    assert weight.grad.tolist() == [0.5, 0.5]
    with pytest.raises(RuntimeError, match="requires grad"):
        np.sin(weight)
