"""The JAX engine: what it compiles, where it computes, and its cache."""

import gc

import numpy as np
import pytest
from gt.engines.check.plans import Builder
from gt.engines.check.values import get, put
from gt.engines.engine import Kind, Meta, Signature
from processes import run_program

pytest.importorskip("jax", reason="jax: make test-all")

import jax
import jax.numpy as jnp
from gt.engines.jax import JAXEngine


def run(name: str, *args: object, backend: str = "jax", **environment: str) -> str:
    done = run_program(f"engines/{name}", *args, GT_BACKEND=backend, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def engine() -> JAXEngine:
    return JAXEngine()


def test_shapes_that_vary_compile_nothing():
    assert run("jax_growing_keys") == "0 []\n"


@pytest.mark.parametrize(
    ("backend", "name", "environment", "reason"),
    [
        ("jax", "statistics_of_a_loop", {}, "came 8 times"),
        ("jax", "statistics_of_a_loop", {"GT_COMPILE": "1"}, "GT_COMPILE=1"),
        ("jax", "statistics_of_a_scope", {}, "asked for by a scope"),
        ("pytorch", "statistics_of_a_loop", {"GT_COMPILE": "1"}, "GT_COMPILE=1"),
    ],
)
def test_statistics_say_what_was_compiled_and_why(backend, name, environment, reason):
    if backend == "pytorch":
        pytest.importorskip("torch", reason="pytorch: make test-all")
    *shown, last = run(name, backend=backend, **environment).splitlines()
    found = eval(last)
    assert reason in [code["reason"] for code in found], found
    for code in found:
        assert code["seconds"] > 0, code
        assert "operations (" in code["operations"] and "tanh" in code["operations"], code
    assert any(line.endswith(f": {reason}") for line in shown), shown


def half(x):
    """Halve x; fail unless XLA traces it."""
    assert isinstance(x, jax.core.Tracer)
    return x / 2


class Own(JAXEngine):
    """An engine with a lowering that NumPy does not have."""

    lowerings = {**JAXEngine.lowerings, "tanh": half}


def test_a_lowering_of_ones_own_is_compiled_for_each_shape():
    engine = Own()
    tanh = engine.lowering(Signature("tanh", (Kind("float32"),), "float32"))
    for shape in [(3,), (2, 3), (3,)]:
        made = tanh(put(engine, np.full(shape, 3, "float32")))
        assert get(engine, made).tolist() == np.full(shape, 1.5).tolist()
    (first, why, seconds), (second, *_) = engine.compiled()
    assert (first, second, why) == ("tanh of [3]", "tanh of [2, 3]", "first use of this shape")
    assert seconds > 0


def test_an_operation_that_is_compiled_alone_says_what_is_wrong(engine):
    """Devices other than CPUs use this form."""
    kinds = (Kind("float32"), Kind("int64"))
    select = engine.alone(Signature("index_select", kinds, "float32"))
    x = put(engine, np.arange(3, dtype="float32"))
    assert get(engine, select(x, np.array([2, 0]), dim=0)).tolist() == [2, 0]
    with pytest.raises(IndexError, match="index 3 is out of range for an axis of length 3"):
        select(x, np.array([0, 3]), dim=0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
def test_arrays_of_jax_and_of_numpy_are_tensors_alike(engine, dtype):
    values = jnp.array([1.5, -2, 3, 0.25], dtype)
    builder = Builder((np.zeros(4), dtype), (np.zeros(4), dtype))
    total = builder.step("add", 0, 1, output=Meta(dtype, (4,)))
    root = builder.step(
        "sqrt",
        builder.step("mul", total, total, output=Meta(dtype, (4,))),
        output=Meta(dtype, (4,)),
    )
    plan = builder.plan(total, root)
    want = [3.0, -4, 6, 0.5]
    ways = [lambda given: engine.run(plan, given), engine.compile(plan)]
    for way in ways:
        for given in ([values, np.asarray(values)], [np.asarray(values), values]):
            made, root = way(given)
            assert engine.describe(made) == Meta(dtype, (4,)) == engine.describe(root)
            assert np.asarray(made).astype("complex64").tolist() == want
            np.testing.assert_allclose(np.abs(np.asarray(root).astype("complex64")), np.abs(want))


def test_what_is_computed_natively_takes_both(engine):
    """NumPy has no functions for these operations: several results, and 0-d arrays."""
    x = np.arange(4, dtype="float32").reshape(2, 2)
    gamma = engine.lowering(Signature("lgamma", (Kind("float32"),), "float32"))
    sort = engine.lowering(Signature("sort", (Kind("float32"),), "float32"))
    for given in (x + 1, jnp.asarray(x + 1)):
        np.testing.assert_allclose(gamma(given), [[0, 0], [np.log(2), np.log(6)]], atol=1e-6)
        values, places = sort(given, dim=0, descending=True)
        assert values.tolist() == [[3, 4], [1, 2]] and places.tolist() == [[1, 1], [0, 0]]
    made = gamma(jnp.float32(3))
    assert made.shape == () and made.dtype == "float32"


def test_compiled_code_copies_a_large_array_once(engine):
    builder = Builder(np.ones(1 << 16, "float32"))
    doubled = builder.step("add", 0, 0, output=Meta("float32", (1 << 16,)))
    compiled = engine.compile(builder.plan(doubled))
    copies = engine._placed._copies
    x = np.ones(1 << 16, "float32")
    for _ in range(3):
        (made,) = compiled([x])
        assert get(engine, made)[-1] == 2
        assert list(copies) == [id(x)]
    del x
    gc.collect()
    assert not copies, "the copy dies with the array"


def test_compiled_code_is_kept_for_the_next_run(tmp_path):
    def is_used(**environment: str) -> str:
        return run("jax_cache", GT_COMPILE="1", **environment).splitlines()[0]

    kept = {"GT_COMPILE_CACHE": "", "XDG_CACHE_HOME": str(tmp_path)}
    assert is_used(**kept) == "False True"
    (folder,) = (tmp_path / "gt" / "jax").iterdir()
    assert folder.stat().st_mode & 0o77 == 0 and any(folder.iterdir())
    assert is_used(**kept) == "True True"
    named = kept | {"GT_COMPILE_CACHE": str(tmp_path / "named")}
    assert is_used(**named) == "False True"
    assert any((tmp_path / "named" / "jax").iterdir())
    assert is_used(**kept | {"GT_COMPILE_CACHE": "off"}) == "False True"


def test_a_cache_that_the_program_has_set_up_stays(tmp_path):
    environment = {"GT_COMPILE_CACHE": str(tmp_path / "other")}
    assert run("jax_cache", tmp_path, **environment).splitlines()[1] == str(tmp_path)
    assert not (tmp_path / "other").exists()
