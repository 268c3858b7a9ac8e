"""Plans of several steps, run and compiled."""

import weakref

import numpy as np
import pytest
from gt.engines.check import programs
from gt.engines.check.plans import Builder
from gt.engines.check.programs import f32
from gt.engines.check.values import get, put
from gt.engines.engine import Meta, Plan, Step, StepError
from gt.engines.numpy import NumPyEngine


def training() -> tuple[Builder, Plan]:
    program = programs.training()
    return program.builder, program.plan


def trained(values: list) -> list[np.ndarray]:
    """Compute the same training step with NumPy in float64."""
    w1, b1, w2, b2, x, y, eye, rate, *_ = values
    hidden = np.maximum(x @ w1 + b1, 0)
    exp = np.exp(hidden @ w2 + b2)
    softmax, wanted = exp / exp.sum(1, keepdims=True), eye[y]
    grad = (softmax - wanted) / 8
    back = (grad @ w2.T) * (hidden > 0)
    grads = [x.T @ back, back.sum(0), hidden.T @ grad, grad.sum(0)]
    weights = [w + rate * g for w, g in zip((w1, b1, w2, b2), grads, strict=True)]
    return [*weights, -(np.log(softmax) * wanted).sum() / 8]


@pytest.fixture(scope="module")
def compiled(engine):
    _, plan = training()
    return engine.compile(plan)


@pytest.mark.parametrize("way", ["step by step", "compiled"])
def test_training(engine, compiled, way):
    """Outputs become inputs of the next run, and the learning rate varies."""
    if way == "compiled" and compiled is None:
        pytest.skip("does not compile")
    builder, plan = training()
    values = builder.values(engine)
    wanted = [value for value, _ in builder.given]
    losses = []
    for round in range(6):
        values[7] = wanted[7] = -0.1 / (1 + round)
        constants = values[4:]
        run = compiled if way == "compiled" else lambda values: engine.run(plan, values)
        *weights, loss = run(values)
        *new, want = trained(wanted)
        values, wanted = weights + constants, new + wanted[4:]
        losses.append(float(get(engine, loss)))
        np.testing.assert_allclose(losses[-1], want, rtol=1e-5)
    assert losses == sorted(losses, reverse=True)
    for weight, want in zip(weights, new, strict=True):
        assert engine.describe(weight) == Meta("float32", want.shape)
        np.testing.assert_allclose(get(engine, weight), want, rtol=1e-5, atol=1e-6)


def compilations(engine, monkeypatch) -> list:
    """Return a list that grows by one for each compilation from now on."""
    seen: list = []
    if engine.name == "jax":
        import jax

        def listen(event, *_, **__):
            if event == "/jax/core/compile/backend_compile_duration":
                seen.append(event)

        jax.monitoring.register_event_duration_secs_listener(listen)
    if engine.name == "pytorch":
        from gt.engines.pytorch import compiled

        inner = compiled.compile_fx_inner
        monkeypatch.setattr(
            compiled, "compile_fx_inner", lambda *args: [seen.append(1), inner(*args)][1]
        )
    return seen


def test_new_numbers_compile_nothing(engine, monkeypatch):
    seen = compilations(engine, monkeypatch)
    numbers = programs.numbers()
    builder, plan = numbers.builder, numbers.plan
    run = engine.compile(plan)
    if run is None:
        pytest.skip("does not compile")
    values = builder.values(engine)
    for step_by_step in (False, True):
        way = (lambda values: engine.run(plan, values)) if step_by_step else run
        first = [get(engine, out).tolist() for out in way(list(values))]
        assert first == [[1.5, 3], [2, 4], [1, 2], [3, 4], [2.5, 3.5], [1, 4]]
        before = len(seen)
        assert before > 0
        changed = way(values[:2] + [-0.5, 1 << 31, False])
        assert [get(engine, out).tolist() for out in changed[:5]] == [
            [-0.5, -1.0],
            [2.0**31, 2.0**32],
            [0, 0],
            [1 - 2**31, 2 - 2**31],
            [0.5, 1.5],
        ]
        assert len(seen) == before


#: Sizes and steps of regions of a (6, 5) tensor, with several starts.
REGIONS = [
    ((2, 5), (1, 1), [(0, 0), (4, 0), (1, 0)]),
    ((2, 2), (3, 2), [(0, 2), (2, 1)]),
    ((0, 5), (1, 1), [(6, 0), (3, 0)]),
]


@pytest.mark.parametrize(("sizes", "steps", "starts"), REGIONS)
def test_starts_that_vary(engine, monkeypatch, sizes, steps, starts):
    seen = compilations(engine, monkeypatch)
    x, value = np.arange(30, dtype="float32").reshape(6, 5), np.full((1, 1), -1, "float32")
    builder = Builder(x, value, *starts[0])
    region = {"sizes": sizes, "steps": steps}
    cut = builder.step("slice", 0, 2, 3, **region, output=f32(*sizes))
    assigned = builder.step("slice_assign", 0, 1, 2, 3, **region, output=f32(6, 5))
    for run in ways(engine, builder.plan(cut, assigned)):
        count = None
        for first in starts:
            part, out = run([*builder.values(engine)[:2], *first])
            place = tuple(
                slice(start, start + size * step, step)
                for start, size, step in zip(first, sizes, steps, strict=True)
            )
            want = x.copy()
            want[place] = -1
            assert engine.describe(part) == f32(*sizes)
            assert get(engine, part).tolist() == x[place].tolist()
            assert get(engine, out).tolist() == want.tolist()
            assert count in (None, len(seen)), "nothing is recompiled"
            count = len(seen)


def ways(engine, plan: Plan) -> list:
    """Return the functions that run a plan: step by step, and compiled if possible."""
    return [run for run in (lambda values: engine.run(plan, values), engine.compile(plan)) if run]


def test_an_input_may_be_an_output_and_be_given_twice(engine):
    x = np.array([1.0, -2.0], "float32")
    builder = Builder(x, x)
    total = builder.step("add", 0, 1, output=f32(2))
    turned = builder.step("neg", 0, output=f32(2))
    plan = builder.plan(0, total, total, 1, turned)
    for run in ways(engine, plan):
        tensor = put(engine, x)
        outputs = run([tensor, tensor])
        assert [get(engine, out).tolist() for out in outputs] == [
            [1, -2],
            [2, -4],
            [2, -4],
            [1, -2],
            [-1, 2],
        ]


def test_views_of_inputs_are_inputs_again(engine):
    """A compiled plan accepts tensors of any strides."""
    x = np.arange(6, dtype="float32").reshape(2, 3)
    builder = Builder(x)
    turned = builder.step("permute", 0, dims=[1, 0], output=f32(3, 2))
    cut = dict(starts=[0, 0], sizes=[2, 2], steps=[1, 2])
    part = builder.step("slice", 0, **cut, output=f32(2, 2))
    (first,) = (builder.plan(turned, part),)
    builder = Builder(x.T.copy(), x[:, ::2].copy())
    last = builder.step("matmul", 0, 1, output=f32(3, 2))
    for run in ways(engine, builder.plan(last, 0)):
        product, again = run(engine.run(first, [put(engine, x)]))
        np.testing.assert_allclose(get(engine, product), x.T @ x[:, ::2])
        assert get(engine, again).tolist() == x.T.tolist()


def test_assigning_leaves_the_operand_as_it_was(engine):
    x = np.zeros((2, 3), "float32")
    builder = Builder(x, 7.0, np.array([1]), np.ones((1, 3), "float32"))
    region = dict(starts=[0, 1], sizes=[2, 1], steps=[1, 1])
    outputs = [
        builder.step("slice_assign", 0, 1, **region, output=f32(2, 3)),
        builder.step("index_add", 0, 2, 3, dim=0, output=f32(2, 3)),
        builder.step("index_copy", 0, 2, 3, dim=0, output=f32(2, 3)),
    ]
    for run in ways(engine, builder.plan(0, *outputs)):
        same, assigned, added, copied = run(builder.values(engine))
        assert get(engine, same).tolist() == x.tolist()
        assert get(engine, assigned).tolist() == [[0, 7, 0], [0, 7, 0]]
        assert get(engine, added).tolist() == [[0, 0, 0], [1, 1, 1]]
        assert get(engine, copied).tolist() == [[0, 0, 0], [1, 1, 1]]


def test_values_go_after_their_last_use():
    made: list = []

    def neg(x):
        alive = sum(seen() is not None for seen in made)
        assert alive <= 1, "only the operand is needed"
        out = np.negative(x)
        made.append(weakref.ref(out))
        return out

    class Watching(NumPyEngine):
        lowerings = {**NumPyEngine.lowerings, "neg": neg}

    engine, builder = Watching(), Builder(np.ones(3))
    value = 0
    for _ in range(10):
        value = builder.step("neg", value, output=Meta("float64", (3,)))
    values = builder.values(engine)
    first = weakref.ref(values[0])
    (out,) = engine.run(builder.plan(value), values)
    assert get(engine, out).tolist() == [1, 1, 1]
    assert first() is None, "run consumes the list"
    assert len(made) == 10


def test_last_uses():
    meta = f32()
    steps = [
        Step("add", (0, 1), {}, meta),
        Step("neg", (2,), {}, meta),
        Step("neg", (0,), {}, meta),
    ]
    plan = Plan((meta, meta), tuple(steps), (3,))
    assert plan.last_uses() == [(1,), (2,), (0, 4)]


def test_the_step_that_fails_is_named(engine):
    builder = Builder(np.ones((2, 3), "float32"), np.ones((4, 5), "float32"))
    one = builder.step("neg", 0, output=f32(2, 3))
    plan = builder.plan(builder.step("matmul", one, 1, output=f32(2, 5)))
    with pytest.raises(StepError) as raised:
        engine.run(plan, builder.values(engine))
    assert raised.value.step == 1


def test_no_memory(engine):
    """An operation whose result does not fit in memory fails."""
    length = 1 << 50
    builder = Builder(np.ones(1, "float32"))
    wide = builder.step("expand", 0, size=[length], output=f32(length))
    plan = builder.plan(builder.step("neg", wide, output=f32(length)))
    with pytest.raises(StepError, match=f"^out of memory: {4 * length} bytes asked for$"):
        engine.run(plan, builder.values(engine))
