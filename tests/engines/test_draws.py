"""Random numbers that PyTorch draws on a device are bitwise those of the native engine."""

import itertools

import numpy as np
import pytest
from gt._gt import native
from gt.engines.engine import Meta

torch = pytest.importorskip("torch")

#: Shapes, each with the starts of the shard and the shape of the unsharded tensor.
PARTS = [
    ((1001,), ()),
    ((0, 3), ()),
    ((), ()),
    ((3, 5), (2, 0, 8, 5)),
    ((3, 5), (2, 1, 8, 7)),
    ((2, 3, 4), (1, 0, 2, 4, 3, 9)),
]
FLOATS = ("float32", "float64", "float16", "bfloat16")
RANGES = [(0, 10), (-5, 2**31), (-(2**63), 2**63 - 1), (-(2**40), 2**33 + 7)]
CASES = [
    *(((name, (3, 8)), dtype) for name in ("rand", "randn") for dtype in FLOATS),
    *((("rand", (-7, 2**40 + 3)), dtype) for dtype in FLOATS),
    *((("randint", (3, 8, *limits)), "int64") for limits in RANGES),
    *((("randint", (3, 8, 0, 2)), dtype) for dtype in ("uint8", "int32", "bool", "float32")),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_they_are_the_same_bits(case):
    from gt.engines.pytorch.draws import draw

    (name, numbers), dtype = case
    for shape, part in PARTS:
        attributes = {"size": list(shape), "dtype": dtype, "part": list(part)}
        ((_, _, wanted),) = native.compute(name, list(numbers), attributes)
        drawn = draw(name, numbers, Meta(dtype, shape), part, "cpu")
        assert tuple(drawn.shape) == shape and str(drawn.dtype) == f"torch.{dtype}"
        given = drawn.flatten().view(torch.uint8).numpy() if drawn.numel() else np.empty(0, "u1")
        assert given.tobytes() == wanted, (case, shape, part)


def test_an_engine_may_draw_itself():
    """`draw` yields the same numbers, step by step and in a compiled plan."""
    from processes import run_program

    backends = itertools.product(([], ["engine"]), ({}, {"GT_COMPILE": "1"}))
    results = []
    for arguments, environment in backends:
        done = run_program("engines/draws", *arguments, GT_BACKEND="pytorch", **environment)
        assert done.returncode == 0, done.stderr
        results.append(done.stdout)
    assert results[0] == results[2] and results[1] == results[3]
