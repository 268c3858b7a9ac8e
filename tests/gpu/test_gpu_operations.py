"""The tests of tests/engines, for the engine on the GPU.

They compare every operation in every dtype with the native engine, with special and invalid values,
plans of several steps, and the bits of random numbers.
"""

import numpy as np
import pytest
from gt._gt import native
from gt.engines.check import check
from gt.engines.engine import Meta
from machine import ON_GPU
from test_draws import CASES, PARTS
from test_plans import (  # noqa: F401
    compiled,
    test_an_input_may_be_an_output_and_be_given_twice,
    test_assigning_leaves_the_operand_as_it_was,
    test_new_numbers_compile_nothing,
    test_starts_that_vary,
    test_the_step_that_fails_is_named,
    test_training,
    test_views_of_inputs_are_inputs_again,
)


def test_operations_values_and_plans(engine):
    """The complete check of engines; for the stand-in a few cases of each operation."""
    report = check(engine, samples=None if ON_GPU else 4)
    assert report.ok, str(report)


def test_the_engine_does_not_rely_on_the_device_to_find_wrong_values(engine):
    assert not engine.finds_errors


@pytest.mark.parametrize("case", CASES, ids=str)
def test_random_numbers_are_the_same_bits(engine, case):
    (name, numbers), dtype = case
    assert engine.draws, "random numbers are generated on the device"
    for shape, part in PARTS:
        attributes = {"size": list(shape), "dtype": dtype, "part": list(part)}
        ((_, _, wanted),) = native.compute(name, list(numbers), attributes)
        drawn = engine.draw(name, numbers, Meta(dtype, shape), part)
        assert engine.describe(drawn) == Meta(dtype, shape)
        assert bytes(engine.read(drawn)) == bytes(wanted), (case, shape, part)


def test_many_random_numbers_are_the_same_bits(engine):
    """Enough numbers to occupy a whole GPU, where kernels use other code paths than for few."""
    count = 1 << 21
    for name, dtype in (("randn", "float32"), ("randn", "float64"), ("rand", "bfloat16")):
        attributes = {"size": [count], "dtype": dtype, "part": []}
        ((_, _, wanted),) = native.compute(name, [5, 2**33 + 1], attributes)
        drawn = engine.draw(name, (5, 2**33 + 1), Meta(dtype, (count,)), ())
        got = np.frombuffer(engine.read(drawn), "u1")
        assert (got == np.frombuffer(wanted, "u1")).all(), (name, dtype)
