"""What an operation has no result for is an error, in the native engine's words."""

import gt
import numpy as np
import pytest
from gt.engines.engine import Meta, StepError
from plans import Builder, get, one_step, put
from samples import apply

X = np.arange(12).reshape(3, 4)
GOOD = {
    "rows": np.array([2, 0]),
    "points": np.array([[0, 2, 1, 0]]),
    "wrapped": np.array([-3, 2]),
    "divisor": np.array([5, -1, 7, 3]),
    "number": 2,
    "exponent": 2,
}
INPUTS = list(GOOD)
SOURCE, POINT = np.ones((2, 4), "int64"), np.ones((1, 4), "int64")

INT64 = Meta("int64", (3, 4))
#: Operations with their operands, some of them named, attributes and results.
STEPS = [
    ("index_select", [X, "rows"], {"dim": 0}, Meta("int64", (2, 4))),
    ("index_add", [X, "rows", SOURCE], {"dim": 0}, INT64),
    ("index_copy", [X, "rows", SOURCE], {"dim": 0}, INT64),
    ("gather", [X, "points"], {"dim": 0}, Meta("int64", (1, 4))),
    ("scatter_add", [X, "points", POINT], {"dim": 0}, INT64),
    ("wrap_index", ["wrapped"], {"length": 3}, Meta("int64", (2,))),
    ("floor_divide", [X, "divisor"], {}, INT64),
    ("remainder", [X, "divisor"], {}, INT64),
    ("floor_divide", [X, "number"], {}, INT64),
    ("remainder", [X, "number"], {}, INT64),
    ("pow", [X, "exponent"], {}, INT64),
]
#: What is given instead, and the step that fails first.
BAD = [
    ("rows", np.array([1, 3]), 0),
    ("rows", np.array([-1, 3]), 0),
    ("points", np.array([[0, 1, 2, 7]]), 3),
    ("points", np.array([[0, -9, 2, 7]]), 3),
    ("wrapped", np.array([-3, 3]), 5),
    ("wrapped", np.array([-4, 8]), 5),
    ("divisor", np.array([5, 0, 7, 3]), 6),
    ("number", 0, 8),
    ("exponent", -1, 10),
]
IDS = [f"{name}={np.asarray(value).tolist()}" for name, value, _ in BAD]


def build() -> tuple[Builder, list[int]]:
    """Plan all steps at once."""
    constants = [operand for _, operands, _, _ in STEPS for operand in operands]
    constants = [operand for operand in constants if not isinstance(operand, str)]
    builder, place = Builder(*GOOD.values(), *constants), len(GOOD)
    outputs = []
    for operation, operands, attributes, output in STEPS:
        numbers = []
        for operand in operands:
            if isinstance(operand, str):
                numbers.append(INPUTS.index(operand))
            else:
                numbers.append(place)
                place += 1
        outputs.append(builder.step(operation, *numbers, output=output, **attributes))
    return builder, outputs


def native_words(value, step: int) -> str:
    """Say what the native engine says of the wrong value in a step."""
    operation, operands, attributes, _ = STEPS[step]
    given = [value if isinstance(operand, str) else operand for operand in operands]
    given = [gt.tensor(each) if isinstance(each, np.ndarray) else each for each in given]
    with pytest.raises(gt.WorkerError) as raised:
        apply(operation, given, **attributes).numpy()
    return str(raised.value)


@pytest.fixture(scope="module")
def compiled(engine):
    builder, outputs = build()
    return engine.compile(builder.plan(*outputs))


def values(engine, builder: Builder, name: str, value) -> list:
    given = builder.values(engine)
    given[INPUTS.index(name)] = put(engine, value)
    return given


@pytest.mark.parametrize(("name", "value", "step"), BAD, ids=IDS)
def test_the_step_that_fails_says_why(engine, name, value, step):
    builder, outputs = build()
    plan = builder.plan(*outputs)
    with pytest.raises(StepError) as raised:
        engine.run(plan, values(engine, builder, name, value))
    assert raised.value.step == step
    assert str(raised.value) in native_words(value, step)


@pytest.mark.parametrize("step", range(len(STEPS)), ids=[name for name, *_ in STEPS])
def test_each_step_fails_alone(engine, step):
    operation, operands, attributes, output = STEPS[step]
    for name, value, _ in BAD:
        if name in [operand for operand in operands if isinstance(operand, str)]:
            given = [value if isinstance(operand, str) else operand for operand in operands]
            builder, plan = one_step(operation, *given, output=output, **attributes)
            with pytest.raises(StepError) as raised:
                engine.run(plan, builder.values(engine))
            assert str(raised.value) in native_words(value, step)


@pytest.mark.parametrize(("name", "value", "step"), BAD, ids=IDS)
def test_compiled_plans_say_the_same(engine, compiled, name, value, step):
    if compiled is None:
        pytest.skip("does not compile")
    builder, _ = build()
    with pytest.raises(StepError) as raised:
        compiled(values(engine, builder, name, value))
    assert raised.value.step == step
    assert str(raised.value) in native_words(value, step)


def test_what_is_fine_is_computed(engine, compiled):
    builder, outputs = build()
    results = engine.run(builder.plan(*outputs), builder.values(engine))
    assert get(engine, results[0]).tolist() == X[[2, 0]].tolist()
    if compiled is not None:
        for ran, out in zip(results, compiled(builder.values(engine)), strict=True):
            assert get(engine, ran).tolist() == get(engine, out).tolist()


def test_an_axis_without_places(engine):
    builder = Builder(np.zeros((0, 2)), np.array([0]))
    made = builder.step("index_select", 0, 1, output=Meta("float64", (1, 2)), dim=0)
    with pytest.raises(StepError, match="index 0 is out of range for an axis of length 0"):
        engine.run(builder.plan(made), builder.values(engine))


def test_nothing_divided_by_zero_is_nothing(engine):
    builder = Builder(np.zeros((0, 2), "int64"), np.array([0, 1]))
    made = builder.step("floor_divide", 0, 1, output=Meta("int64", (0, 2)))
    (out,) = engine.run(builder.plan(made), builder.values(engine))
    assert get(engine, out).shape == (0, 2)


def test_as_on_a_gpu():
    """There nothing may wait for the values of an index: they are looked at in the end."""
    pytest.importorskip("torch", reason="pytorch: make test-all")
    from gt.engines.pytorch import PyTorchEngine

    engine = PyTorchEngine("cpu")
    engine.finds_errors = False
    for name, value, step in BAD:
        builder, outputs = build()
        plan = builder.plan(*outputs)
        with pytest.raises(StepError) as raised:
            engine.run(plan, values(engine, builder, name, value))
        assert (raised.value.step, name) == (step, name)
        assert str(raised.value) in native_words(value, step)
        engine.run(plan, builder.values(engine))
