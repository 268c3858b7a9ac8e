"""The text of a tensor is the same whether NumPy is imported or not."""

import os
import random
import struct
import subprocess
import sys

import numpy as np
import pytest
from gt import _numbers

CODES = {"float32": "f", "float64": "d"}
SHAPES = [(), (1,), (7,), (40,), (3, 5), (4, 30), (2, 3, 4), (1, 1, 1, 2), (2, 0), (0,)]


def both(values: np.ndarray) -> None:
    """Compare GT's text of an array with NumPy's, unless GT leaves it to NumPy."""
    mine = _numbers.array_text(values.tolist(), values.shape, values.dtype.name, "tensor(")
    if mine is not None:
        assert mine == np.array2string(values, separator=", ", prefix="tensor(")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "bool"])
def test_arrays_are_printed_as_numpy_prints_them(dtype, shape):
    """For numbers of many magnitudes."""
    rng = np.random.default_rng(0)
    for scale in (0.01, 1.0, 30.0, 1e4, 1e7):
        for digits in (0, 1, 3, 20):
            values = np.asarray((rng.standard_normal(shape) * scale).round(digits))
            if dtype == "uint8":
                values = abs(values) % 200
            with np.errstate(over="ignore"):
                both(np.asarray(values.astype(dtype)))


@pytest.mark.parametrize("dtype", CODES)
def test_single_numbers_are_printed_as_numpy_prints_them(dtype):
    """For powers of two, their neighbours, and random bits."""
    draw = random.Random(0)
    size = struct.calcsize(CODES[dtype])
    bits = [draw.randbytes(size) for _ in range(2000)]
    numbers = [np.frombuffer(one, dtype)[0] for one in bits]
    for power in range(-14, 15):
        # All three have this dtype, since NumPy 1 computes with Python numbers in float64.
        zero, two, four = np.asarray([0.0, 2.0**power, 2.0 ** (power + 1)], dtype)
        numbers += [two, -two, np.nextafter(two, four), np.nextafter(two, zero)]
    written = 0
    for number in numbers:
        both(np.asarray(number))
        written += _numbers.array_text(number.item(), (), dtype, "") is not None
    assert written > 100


@pytest.mark.skipif("GT_BACKEND" in os.environ, reason="engines in Python import NumPy")
def test_the_first_printed_result_does_not_import_numpy():
    """Importing NumPy takes longer than the rest of the program."""
    program = (
        "import sys, gt; print(gt.tensor([[1.0, 2.5], [0.25, -3.0]]) + 1);"
        "print('numpy' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    text = "tensor([[ 2.  ,  3.5 ],\n        [ 1.25, -2.  ]], dtype=float32)\nFalse\n"
    assert (found.stdout, found.stderr) == (text, "")
