"""Every operation on every engine gives what the native engine gives."""

import numpy as np
import pytest
from gt.engines.engine import Meta
from plans import DTYPES, RANDOM, Builder, check, get, one_step, put, sample, to_bytes
from samples import CASES, OPERATIONS, draw

#: A further result is nothing without what it is a result of.
NAMES = sorted(set(OPERATIONS) - RANDOM - {"further"})


def dtype_of(operation: str, index: int) -> str:
    """Give the dtype of a sample's first tensor, or else of its result."""
    case = OPERATIONS[operation]["samples"][index]
    tensors = [operand for operand in case["operands"] if isinstance(operand, dict)]
    return tensors[0]["dtype"] if tensors else case["attributes"]["dtype"].name


def indices(operation: str, dtypes=DTYPES, once: bool = False) -> list[int]:
    """Give the numbers of an operation's samples, or the first of each dtype."""
    every = [index for name, index in CASES if name == operation]
    every = [index for index in every if dtype_of(operation, index) in dtypes]
    return list({dtype_of(operation, i): i for i in reversed(every)}.values()) if once else every


def test_what_an_engine_has_no_function_for(engine):
    """Composites are expanded, random numbers are made by the worker, the rest goes natively."""
    composites = set(
        "var std softmax log_softmax logsumexp gelu silu softplus "
        "layer_norm layer_norm_backward layer_norm_weight_backward "
        "weight_backward softmax_backward log_softmax_backward gelu_backward".split()
    )
    left = {name for name in OPERATIONS if not engine.lowers(name)}
    assert left >= RANDOM
    natively = {name for name in left if OPERATIONS[name]["primitive"]} - RANDOM
    assert left - RANDOM - natively <= composites


@pytest.mark.parametrize("operation", NAMES)
def test_step_by_step(engine, operation):
    if not engine.lowers(operation):
        pytest.skip("expanded by the worker")
    for index in indices(operation):
        given, attributes, meta, want = sample(operation, index)
        builder, plan = one_step(operation, *given, output=meta, **attributes)
        (out,) = engine.run(plan, builder.values(engine))
        assert engine.describe(out) == meta, (operation, index)
        check(get(engine, out), want, operation, meta.dtype, (index, attributes))


def test_compiled(engine):
    """All operations in one plan, which is compiled once."""
    # PyTorch compiles for long.
    dtypes = DTYPES if engine.name == "jax" else ("bool", "int64", "float16", "float32")
    cases = [
        (operation, index)
        for operation in NAMES
        if engine.lowers(operation)
        for index in indices(operation, dtypes, once=True)
    ]
    samples = [sample(operation, index) for operation, index in cases]
    builder, outputs, first = Builder(*[pair for given, *_ in samples for pair in given]), [], 0
    for (operation, _), (given, attributes, meta, _) in zip(cases, samples, strict=True):
        operands = range(first, first + len(given))
        outputs.append(builder.first(operation, *operands, output=meta, **attributes))
        first += len(given)
    compiled = engine.compile(builder.plan(*outputs))
    if compiled is None:
        pytest.skip("does not compile")
    results = compiled(builder.values(engine))
    for case, (_, attributes, meta, want), out in zip(cases, samples, results, strict=True):
        assert engine.describe(out) == meta, case
        check(get(engine, out), want, case[0], meta.dtype, (case, attributes))


@pytest.mark.parametrize("operation", NAMES)
def test_exact_form_of_pytorch(operation):
    """It is what is compiled; step by step it is taken where no single call does the same."""
    pytest.importorskip("torch", reason="pytorch: make test-all")
    from gt.engines.pytorch import PyTorchEngine

    engine = PyTorchEngine("cpu")
    engine.lowering = engine.exact
    for index in indices(operation):
        given, attributes, meta, want = sample(operation, index)
        builder, plan = one_step(operation, *given, output=meta, **attributes)
        (out,) = engine.run(plan, builder.values(engine))
        assert engine.describe(out) == meta, (operation, index)
        check(get(engine, out), want, operation, meta.dtype, (index, attributes))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 0, 3), (2, 3), (1, 5, 1)])
def test_values_come_in_and_out(engine, dtype, shape):
    values = draw({"dtype": dtype, "shape": shape, "low": 0, "high": 99}, seed=1)
    tensor = put(engine, values, dtype)
    assert engine.describe(tensor) == Meta(dtype, shape)
    assert bytes(engine.read(tensor)) == to_bytes(values, dtype)


def test_views_are_read_in_row_major_order(engine):
    x = np.arange(6.0).reshape(2, 3)
    builder, plan = one_step("permute", x, output=Meta("float64", (3, 2)), dims=[1, 0])
    (out,) = engine.run(plan, builder.values(engine))
    assert get(engine, out).tolist() == x.T.tolist()
